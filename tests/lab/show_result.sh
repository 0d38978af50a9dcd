#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# show_result.sh OUT NAME: what a test in the lab has said, as a test of its own.
if [ ! -e "$1/$2.status" ]; then
  command -v qemu-system-x86_64 >/dev/null || { echo "lab: SKIPPED, see the machine's test"; exit 77; }
  [ ! -e "${1%/*}/skipped" ] || { cat "${1%/*}/skipped"; exit 77; }
  echo "lab: $2 has not run to its end: the machine stopped before"
  [ ! -e "$1/$2.out" ] || cat "$1/$2.out"
  exit 1
fi
cat "$1/$2.out"
status=$(cat "$1/$2.status")
[ "$status" -eq 0 ] || echo "lab: status $status"
exit "$status"
