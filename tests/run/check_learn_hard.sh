#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# check_learn_hard.sh BOSK CC FOLDER SECONDS: programs that fork, map and unmap, and get signals all the time, under `bosk run --learn`, all at once for so long, while somebody attaches
# to processes and goes: they end as they do alone.
set -u

bosk=$(realpath "$1")
# shellcheck disable=SC2034 # learn_common.sh has it
cc=$2
here=$(realpath "$3")
seconds=$4

failures=0
# shellcheck disable=SC1091
source "$here/learn_common.sh"

export BOSK_LEARN=force
end=$((SECONDS + seconds))

# hard NAME COMMAND…: again and again until the time is over.
hard() {
  local name=$1 runs=0
  shift
  while [ $SECONDS -lt $end ]; do
    timeout $((seconds + 120)) "$bosk" run --learn "$@" >"$name.out" 2>"$name.page"
    local status=$?
    if [ $status -ne 0 ] || ! grep -qx ok "$name.out" || ! grep -q '^seen' "$name.page"; then
      echo "status $status: $(cat "$name.out" "$name.page")" >"$name.failed"
      return
    fi
    runs=$((runs + 1))
  done
  echo "$name: $runs runs, $(grep '^cost' "$name.page")"
}

# newest NAME: the number of a process of that name
newest() { grep -lxs "$1" /proc/[0-9]*/comm | tr -dc '0-9\n' | sort -n | tail -1; }

hard mappings ./learn_mappings "$seconds" &
hard signals ./learn_signals "$seconds" &
hard forks ./learn_forks 400 &
BOSK_LEARN_EVENTS=off hard forks_without_events ./learn_forks 400 &
hard waits ./learn_waits "$seconds" &
attached=0
# Where nothing can be seen of others, nobody is attached to.
"$bosk" attach $$ --seconds 0.1 >attached 2>&1
[ $? -eq 125 ] && echo "not attached: $(cat attached)" && wait && exit 77
while [ $SECONDS -lt $end ]; do
  pids=$(newest learn_forks; newest learn_signals)
  # It may have ended meanwhile.
  # shellcheck disable=SC2086
  [ -n "$pids" ] && timeout 60 "$bosk" attach $pids --seconds 0.3 >attached 2>&1 && attached=$((attached + 1))
  sleep 0.1
done
wait
echo "attached $attached times"
for failed in *.failed; do
  [ -e "$failed" ] && complain "${failed%.failed}: $(cat "$failed")"
done
[ $attached -gt 0 ] || complain "nothing could be attached to: $(cat attached)"
[ $failures -eq 0 ]
