#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Compiles the test programs and the examples, and runs them on one OpenMP library:
#   run_all.sh stock | LIBDIR  [-r REGEX] [-t SECONDS] [-n TIMES] [-f FLAGS] [-b FOLDER] [-l] [-v]
#   stock      the system's libgomp; tests marked BOSK_ONLY are left out
#   LIBDIR     folder with libgomp.so.1, put first in LD_LIBRARY_PATH
#   -r REGEX   only the tests whose name matches (extended regular expression)
#   -t SECONDS time limit of each test (default: its own from the manifest, else 60)
#   -n TIMES   run each that many times, stop at its first failure
#   -f FLAGS   further compiler flags, e.g. "-O0" (kept apart from the other programs)
#   -b FOLDER  where the programs are built (default /tmp/build-programs)
#   -l         list the names only      -v  show the output of tests that pass, too
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
usage() { sed -n '3,13s/^# \{0,1\}//p' "$0"; exit 2; }

[ $# -ge 1 ] || usage
library=$1; shift
regex=. limit='' times=1 more_flags='' build=/tmp/build-programs list=0 verbose=0
while getopts 'r:t:n:f:b:lv' option; do
  case $option in
    r) regex=$OPTARG ;; t) limit=$OPTARG ;; n) times=$OPTARG ;; f) more_flags=$OPTARG ;;
    b) build=$OPTARG ;; l) list=1 ;; v) verbose=1 ;; *) usage ;;
  esac
done
if [ "$library" = stock ]; then
  library_path=''
elif [ -e "$library/libgomp.so.1" ]; then
  library_path=$(cd "$library" && pwd)
else
  echo "run_all.sh: no libgomp.so.1 in '$library'" >&2; exit 2
fi
if [ -n "$more_flags" ]; then build=$build/$(echo "$more_flags" | tr -c 'A-Za-z0-9\n' _); fi
mkdir -p "$build"

manifests=$here/manifest.cmake
[ -e "$root/examples/manifest.cmake" ] && manifests="$manifests;$root/examples/manifest.cmake"
lines=$build/tests.$$
trap 'rm -f "$lines"' EXIT
cmake "-DOUT=$lines" "-DMANIFESTS=$manifests" -P "$here/manifest_list.cmake" || exit 2

# compile OUTPUT FOLDER SOURCES FLAGS LINK: rebuilds when a source or a shared header is newer.
compile() {
  local output=$1 folder=$2 sources=$3 flags=$4 link=$5 compiler=gcc standard='-Wall -Wextra' inputs=() source
  for source in $sources; do
    inputs+=("$folder/$source")
    case $source in
      *.cpp) compiler=g++ standard='-std=c++20 -Wall -Wextra' ;;
      *.f90) compiler=gfortran standard="-J$output.modules" ;;
    esac
  done
  if [ -e "$output" ] && [ -z "$(find "${inputs[@]}" "$here"/*.h -newer "$output" 2>/dev/null)" ]; then
    return 0
  fi
  rm -f "$output"
  if [ -e "$output.failed" ] && [ -z "$(find "${inputs[@]}" "$here"/*.h -newer "$output.failed")" ]; then
    return 1
  fi
  link=$(for item in $link; do case $item in -*) echo "$item" ;; *) echo "-l$item" ;; esac; done)
  [ "$compiler" = gfortran ] && mkdir -p "$output.modules"
  # shellcheck disable=SC2086
  $compiler $standard -g -O2 -fopenmp $flags $more_flags "${inputs[@]}" -o "$output" \
    -pthread $link -ldl -lm >"$output.log" 2>&1
  local result=$?
  if [ $result = 0 ]; then rm -f "$output.failed"; else touch "$output.failed"; fi
  [ -s "$output.log" ] && cat "$output.log"
  return $result
}

passed=0 failed=0 skipped=0 failures=()
while IFS='|' read -r kind name folder sources flags link env args timeout bosk_only wrapper wanted skip; do
  if [ "$kind" = plugin ]; then
    [ $list = 1 ] || compile "$build/lib$name.so" "$folder" "$sources" "-fPIC -shared $flags" "$link" ||
      echo "FAIL plug-in $name does not compile"
    continue
  fi
  [[ $name =~ $regex ]] || continue
  if [ $list = 1 ]; then echo "$name"; continue; fi
  if [ -z "$library_path" ] && [ "$bosk_only" = TRUE ]; then skipped=$((skipped + 1)); continue; fi
  first=${sources%% *}
  key=$(echo "$sources|$flags|$link" | cksum | cut -d' ' -f1)
  program=$build/${first%.*}-$key
  if ! compile "$program" "$folder" "$sources" "$flags" "$link"; then
    echo "FAIL $name: does not compile"; failed=$((failed + 1)); failures+=("$name"); continue
  fi
  seconds=${limit:-${timeout:-60}}
  for ((run = 1; run <= times; ++run)); do
    start=$(date +%s.%N)
    # shellcheck disable=SC2086
    output=$(env ${library_path:+LD_LIBRARY_PATH=$library_path} BOSK_TEST_DIR="$build" \
      BOSK_TEST_ALARM=$((seconds > 1 ? seconds - 1 : 1)) $env \
      timeout -k 2 "$seconds" $wrapper "$program" $args 2>&1 </dev/null)
    status=$?
    spent=$(printf '%.1f' "$(echo "$(date +%s.%N) - $start" | bc)")
    [ "$status" = "${wanted:-0}" ] || break
  done
  if [ -n "$skip" ] && [ "$status" = "$skip" ]; then
    echo "SKIP $name: $(echo "$output" | tail -n 1)"; skipped=$((skipped + 1)); continue
  fi
  if [ "$status" = "${wanted:-0}" ]; then
    echo "PASS $name ($spent s)"; passed=$((passed + 1))
    [ $verbose = 1 ] && echo "$output"
  else
    [ "$status" = 124 ] || [ "$status" = 137 ] && status="$status, not finished after $seconds s"
    echo "FAIL $name ($spent s, status $status): $(echo "$output" | tail -n 3 | tr '\n' ' ')"
    failed=$((failed + 1)); failures+=("$name")
  fi
done <"$lines"
[ $list = 1 ] && exit 0
[ ${#failures[@]} -gt 0 ] && echo "failed: ${failures[*]}"
[ $skipped -gt 0 ] && echo "$skipped left out (only on bosk, or not possible here)"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
