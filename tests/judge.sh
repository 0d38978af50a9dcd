#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs a command and judges its exit status and its output (stdout and stderr together):
#   judge.sh [--exit N] [--match REGEX]… [--reject REGEX]… [--endless SECONDS] -- command…
set -u

expected=0
endless=
match=()
reject=()
while [ $# -gt 0 ]; do
  case $1 in
    --exit) expected=$2; shift 2 ;;
    --match) match+=("$2"); shift 2 ;;
    --reject) reject+=("$2"); shift 2 ;;
    --endless) endless=$2; shift 2 ;;
    --) shift; break ;;
    *) echo "judge.sh: unknown option $1"; exit 2 ;;
  esac
done
[ $# -gt 0 ] || { echo "judge.sh: no command"; exit 2; }

output=$(mktemp)
trap 'rm -f "$output"' EXIT
if [ -n "$endless" ]; then
  timeout --kill-after=5 "$endless" "$@" >"$output" 2>&1
  status=$?
  # 124: timeout(1) had to end it, which is what was asked for.
  expected=124
else
  "$@" >"$output" 2>&1
  status=$?
fi
cat "$output"

verdict=0
if [ "$status" -ne "$expected" ]; then
  echo "judge: exit status $status, expected $expected"
  verdict=1
fi
for regex in ${match[@]+"${match[@]}"}; do
  grep -qE -e "$regex" "$output" || { echo "judge: no line matches: $regex"; verdict=1; }
done
for regex in ${reject[@]+"${reject[@]}"}; do
  ! grep -nE -e "$regex" "$output" || { echo "judge: the line above must not be there"; verdict=1; }
done
exit $verdict
