#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# check_report_computing.sh BOSK PROGRAM: teams that compute are not taken to poll for each other, and the report does not say so.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" run --report "$work/r.json" "$2" 5 || exit 1
report=$(tr -d ' \n' <"$work/r.json")
turns=$(grep -o '"joint_turns":[0-9]*' <<<"$report" | head -1)
# Where every second look was wrong there were 65,000 turns and more, and as much polling as computing.
# Of the program, before those of its regions.
polling=$(grep -o '"polling":[0-9.e-]*' <<<"$report" | head -1)
computing=$(grep -o '"computing":[0-9.e-]*' <<<"$report" | head -1)
echo "$turns, $polling, $computing"
awk -v turns="${turns##*:}" -v polling="${polling##*:}" -v computing="${computing##*:}" \
  'BEGIN { exit !(turns != "" && turns <= 1000 && computing > 0 && polling <= 0.2 * computing) }'
