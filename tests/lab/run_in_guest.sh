#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# run_in_guest.sh LIST OUT: runs each line's command and reports as the Test Anything Protocol has it.
set -u
list=$1
out=$2
number=0
echo "1..$(wc -l <"$list")" | tee "$out/results.tap"
while read -r name seconds command; do
  number=$((number + 1))
  timeout --kill-after=5 "$seconds" sh -c "$command" >"$out/$name.out" 2>&1 </dev/null
  status=$?
  verdict=ok
  [ "$status" -eq 0 ] || verdict="not ok"
  echo "$verdict $number - $name ($(cut -d. -f1 /proc/uptime) s after the start, status $status)" |
    tee -a "$out/results.tap"
  echo "$status" >"$out/$name.status"
done <"$list"
