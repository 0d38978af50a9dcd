#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# check_report_nodes.sh BOSK PROGRAM: on four nodes of four CPUs, the report knows on which of them the program's 192 MiB are.
set -u
bosk=$1
program=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# nodes MODE PATTERN: what the report says of them matches.
nodes() {
  "$bosk" run --bind=spread --places cores --threads 16 --report "$work/r.json" "$program" "$1" || exit 1
  got=$(tr -d ' \n' <"$work/r.json" | grep -o '"nodes":[^]]*],"node_cpus":[^]]*]')
  echo "$1: $got"
  grep -qE -e "$2" <<<"$got" || { echo "not $2"; failures=$((failures + 1)); }
}
# On the node where it was before its first region; stacks and the like are elsewhere.
nodes serial '^"nodes":\[([0-9]{1,7},){0,3}2[0-9]{8}(,[0-9]{1,7}){0,3}\],"node_cpus":\[4,4,4,4\]$'
nodes parallel '^"nodes":\[[45][0-9]{7}(,[45][0-9]{7}){3}\],"node_cpus":\[4,4,4,4\]$'
exit $((failures != 0))
