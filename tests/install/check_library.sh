#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# check_library.sh libgomp.so.1 libgomp.map: what programs and the dynamic loader rely on.
set -u
library=$1
version_script=$2
bad=0
complain() { echo "check_library: $*"; bad=1; }

dynamic=$(readelf -dW "$library") || exit 1

grep -q 'Library soname: \[libgomp\.so\.1\]' <<<"$dynamic" ||
  complain "the SONAME is not libgomp.so.1: stock libgomp would be loaded beside us"
grep -q 'NODELETE' <<<"$dynamic" || complain "not marked NODELETE"
grep -qE 'RPATH|RUNPATH' <<<"$dynamic" && complain "has an RPATH"
grep -q 'TEXTREL' <<<"$dynamic" && complain "has text relocations"

# Another library in here would be a version conflict waiting in somebody's wheel.
needed=$(sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p' <<<"$dynamic")
for name in $needed; do
  case $name in
    libc.so.6 | ld-linux*) ;;
    *) complain "needs $name; only glibc is allowed" ;;
  esac
done

exported=$(readelf --dyn-syms -W "$library" |
  awk '$7 ~ /^[0-9]+$/ && $5 != "LOCAL" { print $8 }')
cxx=$(grep '^_Z' <<<"$exported")
[ -z "$cxx" ] || complain "exports C++ symbols:"$'\n'"$cxx"
undefined=$(readelf --dyn-syms -W "$library" | awk '$7 == "UND" { print $8 }')
foreign=$(grep '^_Z' <<<"$undefined")
[ -z "$foreign" ] || complain "imports C++ symbols:"$'\n'"$foreign"

# dlopen of an OpenMP plug-in takes our TLS from glibc's small surplus (about 1.6 KiB for all).
tls=$(readelf -lW "$library" | awk '$1 == "TLS" { print $6 }')
[ $((${tls:-0})) -le 512 ] || complain "the TLS segment is $((tls)) bytes; 512 at most"

# Executable stacks: one assembly file without .note.GNU-stack is enough.
readelf -lW "$library" | grep 'GNU_STACK' | grep -q 'RWE' && complain "asks for executable stacks"

if [ -e "$version_script" ]; then
  # A version node that is missing stops a program at its start.
  versions=$(readelf -VW "$library")
  while read -r node; do
    grep -qE "Name: $node( |$)" <<<"$versions" || complain "version node $node is missing"
  done < <(grep -oE '^(GOMP|OMP|GOACC|OACC|GOMP_PLUGIN)_[0-9.]+[0-9]' "$version_script")
  # But for names of libc that we wrap: docs/design/identity.md.
  unversioned=$(grep -v '@' <<<"$exported" | grep -vxF -f "$(dirname "$0")/../../src/abi/libc/names.txt")
  [ -z "$unversioned" ] || complain "exported without a version:"$'\n'"$unversioned"
fi

[ "$bad" -eq 0 ] && echo "check_library: $(wc -l <<<"$exported") names, needs ${needed//$'\n'/ }"
exit "$bad"
