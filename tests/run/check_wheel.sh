#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# check_wheel.sh BOSK LIBRARY [CACHE]: scikit-learn from PyPI brings a libgomp of its own, under another
# name. `bosk run` must serve it all the same, with the same numbers, and leave its children alone.
# CACHE (default ~/.cache/bosk/scikit-learn) keeps the download; without it and without PyPI: skipped.
set -u

bosk=$(realpath "$1")
library=$(realpath --no-symlinks "$2")
cache=${3:-${XDG_CACHE_HOME:-$HOME/.cache}/bosk/scikit-learn}

skip() { echo "check_wheel: skipped: $*"; exit 77; }

python=$cache/bin/python
if [ ! -e "$cache/complete" ]; then
  command -v python3 >/dev/null || skip "there is no python3"
  rm -rf "$cache" && mkdir -p "$(dirname "$cache")"
  python3 -m venv "$cache" >/dev/null 2>&1 || skip "python3 -m venv does not work"
  "$python" -m pip install --quiet --disable-pip-version-check --retries 1 --timeout 20 --only-binary :all: \
    scikit-learn >"$cache/log" 2>&1 || skip "pip cannot get scikit-learn: $(tail -1 "$cache/log")"
  touch "$cache/complete"
fi
bundled=$(find "$cache" -name 'libgomp-*.so*' | head -1)
[ -n "$bundled" ] || skip "this scikit-learn has no libgomp of its own"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
for variable in $(env | sed -n 's/^\(\(OMP\|GOMP\|BOSK\)_[A-Z_]*\)=.*/\1/p'); do unset "$variable"; done
unset LD_PRELOAD LD_LIBRARY_PATH
export OMP_NUM_THREADS=4

cat >fit.py <<'SCRIPT'
import hashlib, subprocess, sys
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier

x, y = make_classification(n_samples=3000, n_features=20, random_state=3)
model = HistGradientBoostingClassifier(max_iter=20, random_state=1).fit(x, y)
print("boosting", hashlib.sha256(model.predict_proba(x).tobytes()).hexdigest())
blobs, _ = make_blobs(n_samples=3000, centers=6, random_state=5)
means = KMeans(n_clusters=6, n_init=3, random_state=2, algorithm="lloyd").fit(blobs)
# Partial sums of the members are added as they come.
print("k-means", "%.9g" % means.inertia_, np.bincount(means.labels_).tolist())
sys.stdout.flush()
# Children that load it all and use nothing of it, and one that has nothing to do with it.
subprocess.run([sys.executable, "-c", "import sklearn.cluster"], check=True)
subprocess.run(["true"], check=True)
SCRIPT

failures=0
complain() { echo "check_wheel: $*"; failures=$((failures + 1)); }

"$python" fit.py >stock 2>&1 || complain "fails on the bundled libgomp: $(cat stock)"
"$bosk" run --report=full "$python" fit.py >served 2>report || complain "fails: $(cat served report)"
cmp -s stock served || complain "other numbers than on the bundled libgomp: $(diff stock served)"
[ "$(grep -c '^bosk report' report)" -eq 1 ] || complain "not one report, of the parent: $(cat report)"
grep -v '^ ' report | grep -vqE '^(bosk report|machine|teams|members|ghosts|made|switches|steals|preemption|idle|placed|$)' &&
  complain "more than the report is said: $(cat report)"
# Every region of the two fits: level, regions, sizes, members.
regions=$(sed -n 's/^ *1  *\([0-9]*\)  *4  *[0-9]*$/\1/p' report)
[ "${regions:-0}" -gt 100 ] || complain "it was not served: $(cat report)"

# Without being put first it is not served: the wheel asks for its own by another name.
LD_LIBRARY_PATH=$(dirname "$library") BOSK_REPORT=- "$python" fit.py >beside 2>&1
cmp -s stock beside || complain "LD_LIBRARY_PATH alone changes something: $(cat beside)"

[ "$failures" -eq 0 ] && echo "check_wheel: all well, $regions regions served"
exit "$failures"
