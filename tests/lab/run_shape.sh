#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# run_shape.sh BOSK FOLDER OPTIONS…: boots one machine and runs in it what FOLDER/list says: a line for each
# test, NAME SECONDS COMMAND. Leaves FOLDER/out/NAME.status, NAME.out and results.tap. Status 0: all have run,
# whatever they found.
set -u
bosk=$1
folder=$2
shift 2
if ! command -v qemu-system-x86_64 >/dev/null; then
  echo "lab: SKIPPED, there is no qemu-system-x86_64 here: apt-get install qemu-system-x86"
  exit 77
fi
rm -rf "$folder/out" "$folder/skipped"
"$bosk" lab --output "$folder/out" "$@" -- \
  sh "$(dirname "${BASH_SOURCE[0]}")/run_in_guest.sh" "$folder/list" "$folder/out" 2>"$folder/said"
status=$?
cat "$folder/said" >&2
# The other kernel is no part of the Debian that all is tested on: an archive need not have it.
if [ $status -eq 125 ] && [[ " $* " == *" --kernel newer "* ]] &&
  grep -q "cannot be fetched from Debian" "$folder/said"; then
  echo "lab: SKIPPED, the kernel of Debian's backports cannot be had here" | tee "$folder/skipped"
  exit 77
fi
exit $status
