#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# `bosk topo --costs`: measured once, kept, measured again when the file is no good. Arguments: the tool.
set -u
bosk=$1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export XDG_CACHE_HOME=$folder

fail() {
  echo "$*"
  exit 1
}

# An invented machine is not measured, and says so; nothing is written.
"$bosk" topo --synthetic 'node:2 core:2 pu:1' --costs >"$folder/out" 2>"$folder/err" || fail "status $?"
grep -q 'not measured' "$folder/out" || fail "an invented machine has no word on its figures"
! grep -q 'measured on this machine' "$folder/out" || fail "an invented machine was measured"
[ ! -e "$folder/bosk" ] || fail "figures of an invented machine were kept"
"$bosk" topo --synthetic 'node:2 core:2 pu:1' --costs --json >"$folder/json" || fail "status $?"
python3 - "$folder/json" <<'END' || fail "the JSON is not as it should be"
import json, sys
costs = json.load(open(sys.argv[1]))["costs"]
assert len(costs["access"]) == 2 * 2 * 2 * 3 and len(costs["migration"]) == 2 * 2 * 2
assert all(one["latency_ns"]["source"] != "measured" for one in costs["access"])
END

# This one is, if times mean anything here.
"$bosk" topo --costs --quick >"$folder/first" 2>"$folder/err" || fail "status $?"
if ! grep -q 'measured on this machine' "$folder/first"; then
  echo "cannot be measured here: $(cat "$folder/err")"
  exit 77
fi
file=$(echo "$folder"/bosk/memory-costs-*)
[ -s "$file" ] || fail "nothing was kept"
[ "$(find "$folder/bosk" -mindepth 1 | wc -l)" -eq 1 ] || fail "more was left than the file"
cp "$file" "$folder/kept"
"$bosk" topo --costs --quick >"$folder/second" 2>"$folder/err" || fail "status $?"
cmp "$folder/first" "$folder/second" || fail "figures that were kept are others"
cmp "$file" "$folder/kept" || fail "it was measured again"

# A file that was cut: one line that names it, and new figures.
head -c 100 "$folder/kept" >"$file"
"$bosk" topo --costs --quick >"$folder/third" 2>"$folder/err" || fail "status $?"
[ "$(grep -c "costs of memory in $file" "$folder/err")" -eq 1 ] || fail "said: $(cat "$folder/err")"
grep -q 'measured on this machine' "$folder/third" || fail "it was not measured again"
tail -n 1 "$file" | grep -q '^end [0-9]' || fail "the file was not mended"
echo passed
