#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# check_objects.sh LIST: no object of the library may have a C++ initialiser, destructor or guard.
# Programs call us before our constructors ran, and workers run on after destructors did.
set -u
bad=0
count=0
while read -r object; do
  [ -n "$object" ] || continue
  count=$((count + 1))
  found=$(nm "$object" | grep -oE '_GLOBAL__sub_[ID]_[A-Za-z0-9_]*|__cxa_atexit|__cxa_guard_acquire|__cxa_thread_atexit')
  if [ -n "$found" ]; then
    echo "check_objects: $object has ${found//$'\n'/ }"
    bad=1
  fi
done <"$1"
[ "$count" -gt 0 ] || { echo "check_objects: no objects in $1"; exit 1; }
[ "$bad" -eq 0 ] && echo "check_objects: $count objects, none with an initialiser"
exit "$bad"
