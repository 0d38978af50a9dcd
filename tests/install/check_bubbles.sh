#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# check_bubbles.sh BUILD CC CXX CMAKE [FC]: compiles the installed examples for bosk's own threads with nothing but what
# is installed, by hand as a user would, and runs them.
set -eu
build=$1
cc=$2
cxx=$3
cmake=$4
fc=${5:-}
fail() { echo "check_bubbles: $*"; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix="$work/prefix"
"$cmake" --install "$build" --prefix "$prefix" >"$work/log" || { cat "$work/log"; exit 1; }
examples="$prefix/share/doc/bosk/examples/bubbles"
library="$prefix/lib/libgomp.so.1"

expect() {
  local out
  out=$(LD_LIBRARY_PATH="$prefix/lib" "$work/program") || fail "$1: $out"
  [[ $out == *"$1"* ]] || fail "wrong output: $out, not: $1"
}
"$cc" -O2 -I"$prefix/include" "$examples/fibonacci.c" -o "$work/program" "$library"
expect "as computed by one thread"
"$cxx" -std=c++17 -O2 -I"$prefix/include" "$examples/mergesort.cpp" -o "$work/program" "$library"
expect "sorted"
if [ -n "$fc" ]; then
  # With the module as it is installed, and with one that the user's compiler makes.
  "$fc" -O2 -I"$prefix/include/bosk/fortran" "$examples/conduction.f90" -o "$work/program" "$library"
  expect "as by one thread"
  (cd "$work" && "$fc" -fsyntax-only "$prefix/include/bosk/bosk.f90")
  "$fc" -O2 -I"$work" "$examples/conduction.f90" -o "$work/program" "$library"
  expect "as by one thread"
fi
# Every public header stands alone, in C and in C++.
for header in "$prefix"/include/bosk/*.h; do
  echo "#include <bosk/${header##*/}>" >"$work/alone.c"
  "$cc" -std=c99 -Wall -Wextra -Werror -fsyntax-only -I"$prefix/include" "$work/alone.c" || fail "$header in C"
  "$cxx" -x c++ -std=c++11 -Wall -Wextra -Werror -fsyntax-only -I"$prefix/include" "$work/alone.c" ||
    fail "$header in C++"
done
echo "check_bubbles: the installed headers, module and examples work"
