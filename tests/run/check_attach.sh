#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# check_attach.sh BOSK CC FOLDER: `bosk attach` to processes that run, and what these notice of it: nothing.
set -u

bosk=$(realpath "$1")
cc=$2
here=$(realpath "$3")

failures=0
# shellcheck disable=SC1091
source "$here/learn_common.sh"

# begin COMMAND…: runs it in the background; `pid` is its number when it has begun to run.
begin() {
  "$@" >out &
  pid=$!
  while [ "$(readlink "/proc/$pid/exe")" = "$(readlink /proc/$$/exe)" ] && kill -0 "$pid" 2>/dev/null; do sleep 0.01; done
}
# ends WHAT STATUS: it ends so
ends() {
  wait "$pid"
  local status=$?
  [ $status -eq "$2" ] || complain "$1: status $status instead of $2 ($(cat out))"
}

begin ./learn_pattern ring 2 2
"$bosk" attach "$pid" >page 2>err
status=$?
ends "the first one" 0
if [ $status -eq 125 ]; then
  grep -q 'nothing can be seen' err || complain "cannot observe, and does not say why: $(cat err)"
  [ $failures -eq 0 ] && echo "check_attach: $(cat err)" && exit 77
fi
[ $status -eq 0 ] || complain "a process that ends meanwhile: status $status ($(cat err))"
grep -q "learnt of $pid (learn_pattern)" page || complain "no page of it: $(cat page)"
grep -q "observes $pid" err || complain "it does not say that it has begun: $(cat err)"

# Who shares with whom, as good as from the beginning of a program.
if ! grep -q 'threads are told less often\|could not be given faults' page; then
  for pattern in "ring 8" "far 8"; do
    found=()
    for _ in 1 2 3; do
      # shellcheck disable=SC2086
      begin ./learn_pattern $pattern 2.5
      "$bosk" attach "$pid" --seconds 1.8 --record r --json learnt.json >page 2>err || complain "$pattern: $(cat err)"
      ends "$pattern" 0
      "$bosk" learn r --csv matrix >again 2>err || complain "bosk learn after $pattern: $(cat err)"
      found+=("$(python3 correlation.py out matrix)")
      echo "$pattern: correlation ${found[-1]}, $(grep '^seen' page), $(grep '^cost' page)"
      python3 -c "import sys; sys.exit(not ${found[-1]} >= .9)" && break
    done
    python3 -c "import statistics, sys
found = [float(word) for word in sys.argv[1:]]
sys.exit(not max(found[0] if len(found) == 1 else 0, statistics.median(found)) >= .9)" "${found[@]}" || complain "$pattern: the matrix correlates by ${found[*]}, .9 wanted: $(cat page)"
  done
  python3 -c 'import json; json.dump({"bosk_report": 1, "processes": [], "learnt": json.load(open("learnt.json"))}, open("whole.json", "w"))'
  python3 "$here/schema.py" "$here/../../docs/report.schema.json" whole.json || complain "JSON: not what the schema says"
fi

# Programs that notice whatever is done to them end as they do alone, however often somebody comes and goes.
for program in "learn_waits 3" "learn_signals 3" "learn_mappings 3" "learn_forks 200"; do
  # shellcheck disable=SC2086
  begin ./$program
  looked=0
  while "$bosk" attach "$pid" --seconds 0.2 >page 2>err; do looked=$((looked + 1)); done
  ends "$program" 0
  grep -qx ok out || complain "$program: $(cat out)"
  [ $looked -gt 0 ] || complain "$program: it was not observed at all: $(cat err)"
done

# Statically linked; two at once; by JSON to standard output.
"$cc" -O1 -static -pthread "$here/learn_pattern.c" -o static_pattern 2>/dev/null && {
  begin ./static_pattern ring 4 1.5
  "$bosk" attach "$pid" >page 2>err || complain "a static program: $(cat err)"
  ends "a static program" 0
  grep -q '^seen  *[1-9]' page || complain "nothing was seen of a static program: $(cat page)"
}
./learn_pattern far 2 1.5 >first &
one=$!
begin ./learn_pattern ring 2 1.5
"$bosk" attach $one "$pid" $one --json - >learnt.json 2>err || complain "two processes: $(cat err)"
ends "two processes" 0
python3 -c 'import json
learnt = json.load(open("learnt.json"))
assert learnt["observed"]["processes"] == 2 and learnt["threads_seen"] >= 4, learnt' || complain "two processes: $(head -c 1000 learnt.json)"

# One that only waits is not touched; ^C and other signals end it with a page.
for signal in INT TERM; do
  begin sleep 30
  rm -f err
  # (In the background a shell has programs ignore SIGINT.)
  python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$bosk" attach "$pid" >page 2>err &
  attached=$!
  while ! grep -qs observes err && kill -0 $attached 2>/dev/null; do sleep 0.05; done
  kill -$signal $attached
  wait $attached || complain "SIG$signal: status $?"
  grep -q 'did not compute' page || complain "SIG$signal: no page: $(cat page err)"
  kill -0 "$pid" || complain "a process that only waits has ended"
  kill "$pid"
  wait "$pid" 2>/dev/null
done

# refuse WORDS STATUS ARGUMENTS…: one line
refuse() {
  local wanted=$1 as=$2
  shift 2
  "$bosk" attach "$@" >out 2>err
  local status=$?
  [ $status -eq "$as" ] || complain "attach $*: status $status ($(cat err))"
  [ "$(wc -l <err)" -eq 1 ] || complain "attach $*: not one line: $(cat err)"
  grep -q -- "$wanted" err || complain "attach $*: $(cat err)"
}
begin sleep 30
refuse 'PID is required' 2
refuse 'there is no process' 2 4194304
refuse 'PID = app' 2 app
refuse 'more than 0' 2 "$pid" --seconds 0
refuse 'more than 0' 2 "$pid" --seconds soon
refuse '/nowhere/r' 125 "$pid" --record /nowhere/r
kill "$pid"
wait "$pid" 2>/dev/null
begin sh -c 'kill -STOP $$; exit 3'
sleep 0.1
"$bosk" attach "$pid" --seconds 0.3 >page 2>err || complain "a stopped process: $(cat err)"
grep -q '^State:.*T' "/proc/$pid/status" || complain "a stopped process runs"
kill -CONT "$pid"
ends "a stopped process" 3
if [ "$(id -u)" -eq 0 ] && command -v setpriv >nothing; then
  begin sleep 30
  chmod 755 . && chmod 666 out err page 2>nothing
  setpriv --reuid 65534 --clear-groups "$bosk" attach "$pid" >page 2>err
  [ $? -eq 2 ] || complain "somebody else's process: $(cat err page)"
  grep -q 'not ours to look at' err || grep -q 'Permission denied' err || complain "somebody else's process: $(cat err)"
  kill "$pid"
  wait "$pid" 2>/dev/null
fi

[ $failures -eq 0 ]
