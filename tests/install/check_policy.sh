#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# check_policy.sh BUILD CC EXAMPLE CMAKE: builds the example of a policy outside of our tree against the
# installed package, and looks at what it decides and at what is refused.
set -u
build=$1
cc=$2
example=$3
cmake=$4
failures=0
complain() { echo "check_policy: $*"; failures=$((failures + 1)); }
fail() { echo "check_policy: $*"; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for variable in $(env | sed -n 's/^\(\(OMP\|GOMP\|BOSK\)_[A-Z_]*\)=.*/\1/p'); do unset "$variable"; done
unset LD_PRELOAD LD_LIBRARY_PATH

prefix=$work/prefix
"$cmake" --install "$build" --prefix "$prefix" >"$work/log" || { cat "$work/log"; exit 1; }
mkdir "$work/mine" && cp "$example"/*.c "$example/CMakeLists.txt" "$work/mine" || exit 1
cd "$work/mine" || exit 1
{ "$cmake" -S . -B out -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release &&
  "$cmake" --build out; } >"$work/log" 2>&1 || { cat "$work/log"; fail "the example cannot be built"; }
grep -q warning "$work/log" && complain "the example is compiled with warnings: $(cat "$work/log")"
grep -q "bosk_DIR:PATH=$prefix/" out/CMakeCache.txt || complain "another bosk's package was used"
for example in wrr.c by_depth.c; do
  [ "$(wc -l <"$example")" -lt 150 ] || complain "$example is no longer an example of less than 150 lines"
done

bosk=$prefix/bin/bosk
machine=(--synthetic "node:4 core:2 pu:1" --workers 8)

# members NODE: how many members of level 2 ran there, by the report in $output.
members() {
  awk -v node="$1" '/^members +node/ { table = 1; sub(/^members +node/, ""); next }
                    table && $1 == node { print $4; exit }' <<<"$output"
}

# decides POLICY:ARGUMENT NODE: thread 7 sits in node 3; its teams are at home in NODE, and run nowhere else. The
# program stops at 20 members on another kernel thread than its opener's at first; when the opener itself is
# preempted and goes on elsewhere, some of these are its own, in node 3.
decides() {
  output=$("$bosk" run "${machine[@]}" --policy "out/${1/:/.so:}" --report=full out/where 2>&1) ||
    { complain "$1: $output"; return; }
  if ! grep -q 'using this machine' <<<"$output"; then # no hwloc: descriptions are not read
    grep -q "^placed      by $1" <<<"$output" || complain "$1: not placed by it: $output"
    for node in 0 1 2; do
      count=$(members "$node")
      if [ "$node" -eq "$2" ]; then
        [ "${count:-0}" -ge 10 ] || complain "$1: ${count:-no} members in node $node: $output"
      else
        [ "${count:-x}" = 0 ] || complain "$1: ${count:-no} members in node $node: $output"
      fi
    done
  fi
}
decides wrr:6-1-1-0 2
decides wrr:1-7-0-0 1
decides wrr:8-1-1-1 0
decides by_depth:node-together 3

# refused STATUS PATTERN POLICY: one line, and the program is not run.
refused() {
  output=$("$bosk" run "${machine[@]}" --policy "$2" out/where 2>&1)
  [ $? -eq 2 ] || complain "$2: not refused: $output"
  grep -qE -e "$1" <<<"$output" || complain "$2: no line matches '$1': $output"
  [ "$(wc -l <<<"$output")" -eq 1 ] || complain "$2: more than one line: $output"
}
refused '^bosk: --policy: the policy wrr: "3-x" are no weights' out/wrr.so:3-x
refused '^bosk: --policy: the policy by_depth: "shelf" is not a level' out/by_depth.so:node-shelf
refused 'nosuch.so cannot be loaded: .*No such file' out/nosuch.so
echo 'int other;' >other.c && "$cc" -shared -fPIC other.c -o out/other.so || exit 1
refused 'has no symbol bosk_policy_plugin' out/other.so
sed 's/BOSK_POLICY_HEADER/77, sizeof(struct bosk_policy)/' wrr.c >old.c &&
  "$cc" -I"$prefix/include" -shared -fPIC old.c -o out/old.so || exit 1
refused 'made for version 77' out/old.so
refused '"shelf" is not a level' out/wrr.so@shelf

# By the environment what is refused is told in one line, and the default goes on.
output=$(BOSK_POLICY=out/old.so BOSK_SYNTHETIC="node:4 core:2 pu:1" BOSK_REPORT=- \
  LD_LIBRARY_PATH=$prefix/lib out/where 2>&1) || complain "a bad BOSK_POLICY ends the program: $output"
[ "$(grep -c '^bosk: ' <<<"$output")" -eq 1 ] || complain "not one line: $output"
grep -q '^bosk: BOSK_POLICY: .*made for version 77.*; using spread$' <<<"$output" ||
  complain "not said what is used: $output"
grep -q 'placed      by spread' <<<"$output" || complain "the default does not go on: $output"

# Whatever folder the program is started in, and whatever is in the path.
mkdir 'a,b c' && cp out/wrr.so 'a,b c/w@1.so' || exit 1
output=$("$bosk" run "${machine[@]}" --policy 'a\,b c/w\@1.so:1-7-0-0@machine' --dry-run out/where)
grep -qF "BOSK_POLICY='$work/mine/a\\,b c/w\\@1.so:1-7-0-0@machine'" <<<"$output" ||
  complain "the path is not what the program needs: $output"
(cd / && sh -c "$output" >/dev/null 2>&1 || sh -c "cd '$work/mine' && $output" >"$work/log" 2>&1) ||
  complain "the path cannot be read again: $(cat "$work/log")"

# A policy that itself uses OpenMP has one runtime with the program.
cat >linked.c <<'TEXT'
#include <bosk/policy.h>
#include <omp.h>
#include <stdio.h>
static int start(const struct bosk_policy_start* start, void** state, char* why, size_t room) {
  (void)start;
  (void)why;
  (void)room;
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[4096];
  int texts = 0;
  *state = (void*)omp_get_wtime;
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    int is_text = 0;
    for (const char* c = line; *c != '\0'; ++c) {
      if (c[0] == 'r' && c[1] == '-' && c[2] == 'x' && c[3] == 'p') is_text = 1;
      if (is_text && __builtin_strncmp(c, "libgomp.so", 10) == 0) {
        ++texts;
        break;
      }
    }
  }
  if (maps != NULL) fclose(maps);
  fprintf(stderr, "%d libgomp\n", texts);
  return 1;
}
const struct bosk_policy bosk_policy_plugin = {BOSK_POLICY_HEADER, .name = "linked", .start = start};
TEXT
"$cc" -I"$prefix/include" -fopenmp -shared -fPIC linked.c -o out/linked.so || exit 1
output=$("$bosk" run "${machine[@]}" --policy out/linked.so out/where 2>&1) ||
  complain "a policy that is linked with libgomp: $output"
grep -q '^1 libgomp$' <<<"$output" || complain "a second libgomp: $output"

[ "$failures" -eq 0 ] && echo "check_policy: the example decides, and what cannot be is refused"
exit "$failures"
