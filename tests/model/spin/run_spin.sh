#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# run_spin.sh [--planted] MODEL [BUG]: searches MODEL.pml exhaustively, with the planted bug if one is
# named (a BUG_ name from the model). Exits 0 when it holds, 1 when Spin finds an error, 2 without a
# verdict, 77 when Spin is not installed. --planted swaps 0 and 1: the error must be found.
set -euo pipefail

holds=0 found=1
if [[ ${1:-} == --planted ]]; then
  holds=1 found=0
  shift
fi
model=${1:?usage: run_spin.sh [--planted] MODEL [BUG]}
bug=${2:-}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source_file=$here/$model.pml

if ! command -v spin >/dev/null; then
  echo "SKIPPED: spin is not installed (./dev setup, or apt-get install spin)"
  exit 77
fi
if [[ ! -f $source_file ]]; then
  echo "run_spin.sh: no model $source_file" >&2
  exit 2
fi
# A misspelt bug would be no bug, and its test would fail for the wrong reason.
if [[ -n $bug ]] && ! grep -qw "$bug" "$source_file"; then
  echo "run_spin.sh: $source_file has no $bug" >&2
  exit 2
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$source_file" model.pml
flags=()
[[ -n $bug ]] && flags+=("-D$bug")

spin "${flags[@]}" -a model.pml
"${CC:-cc}" -O1 -w -DSAFETY -DNOCLAIM -DVECTORSZ=4096 -o pan pan.c
./pan -m1000000 >report || true
cat report

if grep -q "max search depth too small\|out of memory\|Search not completed" report &&
   ! grep -q "pan:1:" report; then
  echo "run_spin.sh: the search was not complete" >&2
  exit 2
fi
errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' report)
case $errors in
  0) exit $holds ;;
  '') echo "run_spin.sh: no verdict from pan" >&2; exit 2 ;;
esac
spin "${flags[@]}" -t -p model.pml | tail -40 || true
exit $found
