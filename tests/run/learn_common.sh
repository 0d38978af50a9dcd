#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What the tests of `bosk run --learn` and of `bosk attach` have in common: to be sourced, with bosk, cc and here set. A folder of its own, the programs in it, and
# how well a matrix is the truth.
# shellcheck disable=SC2154,SC2034 # set and used by who sources this
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
for variable in $(env | sed -n 's/^\(\(OMP\|GOMP\|BOSK\)_[A-Z_]*\)=.*/\1/p'); do unset "$variable"; done
unset LD_PRELOAD LD_LIBRARY_PATH

complain() { echo "$(basename "$0" .sh): $*"; failures=$((failures + 1)); }

for program in learn_pattern learn_mappings learn_signals learn_forks learn_userfaultfd learn_waits; do
  "$cc" -O1 -pthread "$here/$program.c" -o $program || exit 1
done

# How far the matrix in CSV is the truth that the program has printed: Pearson's correlation over the pairs.
cat >correlation.py <<'END'
import csv, sys
truth = [line.split() for line in open(sys.argv[1])]
numbers = [line[0] for line in truth]
rows = list(csv.DictReader(open(sys.argv[2])))
seen = {row["thread"]: row for row in rows}
a, b = [], []
for i, x in enumerate(numbers):
    for j, y in enumerate(numbers):
        if i < j:
            a.append(float(truth[i][j + 1]))
            b.append(float(seen[x].get(y, 0)) if x in seen else 0.0)
n = len(a)
ma, mb = sum(a) / n, sum(b) / n
saa = sum((v - ma) ** 2 for v in a)
sbb = sum((v - mb) ** 2 for v in b)
sab = sum((v - ma) * (w - mb) for v, w in zip(a, b))
print(round(sab / (saa * sbb) ** 0.5, 3) if saa > 0 and sbb > 0 else 0)
END
