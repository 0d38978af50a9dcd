#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# check_install.sh BUILD CC PROGRAM.c CMAKE: installs into a new folder and uses what lies there.
set -eu
build=$1
cc=$2
source=$3
cmake=$4
fail() { echo "check_install: $*"; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix="$work/prefix"
"$cmake" --install "$build" --prefix "$prefix" >"$work/log" || { cat "$work/log"; exit 1; }

[ -f "$prefix/lib/libgomp.so.1" ] || fail "no lib/libgomp.so.1"
[ -f "$prefix/lib/libbosk-observed.so" ] || fail "no lib/libbosk-observed.so"
[ -e "$prefix/lib/libgomp.so" ] || fail "no lib/libgomp.so"
[ "$(readlink "$prefix/lib/libgomp.so")" = libgomp.so.1 ] || fail "libgomp.so is not a link to libgomp.so.1"

"$cc" -O2 -fopenmp "$source" -o "$work/program"
LD_LIBRARY_PATH="$prefix/lib" ldd "$work/program" | grep -qF "$prefix/lib/libgomp.so.1" ||
  fail "the program does not find the installed library"
out=$(LD_LIBRARY_PATH="$prefix/lib" OMP_NUM_THREADS=4 "$work/program")
[ "$out" = "4 threads, sum 499500" ] || fail "LD_LIBRARY_PATH: wrong output: $out"

if [ -x "$build/bin/bosk" ]; then
  [ -x "$prefix/bin/bosk" ] || fail "no bin/bosk"
  # The program says which libgomp it runs on: the tool must have found the one beside itself.
  out=$(OMP_NUM_THREADS=4 "$prefix/bin/bosk" run "$work/program" maps)
  grep -qF "4 threads, sum 499500" <<<"$out" || fail "bosk run: wrong output: $out"
  grep -qF "$prefix/lib/libgomp.so.1" <<<"$out" || fail "bosk run: not on the installed library: $out"
fi
# What programs that call bosk.h find it by.
[ "$(readlink "$prefix/lib/libbosk.so")" = libgomp.so.1 ] || fail "libbosk.so is not a link to libgomp.so.1"
use_bosk="$(dirname "$source")/use_bosk.c"
expect_threads() {
  out=$("$@") || fail "$*: $out"
  [ "$out" = "10 threads, no error" ] || fail "$*: wrong output: $out"
}
"$cc" "$use_bosk" -I"$prefix/include" -L"$prefix/lib" -Wl,-rpath,"$prefix/lib" -lbosk -o "$work/by_hand"
expect_threads "$work/by_hand"
if command -v pkg-config >/dev/null; then
  flags=$(PKG_CONFIG_PATH="$prefix/lib/pkgconfig" pkg-config --cflags --libs bosk) || fail "pkg-config: $flags"
  # shellcheck disable=SC2086 # several flags
  "$cc" "$use_bosk" $flags -o "$work/by_pkg_config"
  expect_threads "$work/by_pkg_config"
else
  grep -q '^Libs: .*-lbosk' "$prefix/lib/pkgconfig/bosk.pc" || fail "no lib/pkgconfig/bosk.pc"
fi
mkdir "$work/user"
cat >"$work/user/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(bosk 0.1 REQUIRED)
add_executable(by_cmake "$use_bosk")
target_link_libraries(by_cmake PRIVATE bosk::bosk)
END
"$cmake" -S "$work/user" -B "$work/user/build" -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" &&
  "$cmake" --build "$work/user/build" >>"$work/log" || { cat "$work/log"; fail "find_package(bosk)"; }
expect_threads "$work/user/build/by_cmake"

# A program that has a phase of it counted in the lab (docs/locality.md) needs the header alone. The plugin knows the marks
# by their bytes.
phase="$(dirname "$source")/counted_phase.c"
"$cc" -std=c99 -O2 -Wall -Wextra -Werror -I"$prefix/include" "$phase" -o "$work/phase" ||
  fail "a program with markers does not compile"
out=$("$work/phase") || fail "a program with markers: $out"
[ "$out" = "sum 499500" ] || fail "a program with markers: wrong output: $out"
if [ "$(uname -m)" = x86_64 ]; then
  for code in 01 02; do
    LC_ALL=C grep -qaP "\\x0f\\x1f\\x80\\x$code\\xc0\\x05\\x0b" "$work/phase" || fail "mark $code is not in the program"
  done
fi

# What `bosk lab` starts and builds.
if [ -x "$build/lib/bosk/lab-init" ]; then
  [ -x "$prefix/lib/bosk/lab-init" ] || fail "no lib/bosk/lab-init"
  [ -r "$prefix/share/bosk/kernel/config" ] || fail "no share/bosk/kernel/config"
fi
echo "check_install: the installed library and tool work"
