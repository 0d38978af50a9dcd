#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# check_python.sh LIBRARY CC SUM_C: Python with an OpenMP extension (through ctypes): used by the interpreter's
# threads and by the children of multiprocessing, which forks after regions.
set -u

library=$(realpath --no-symlinks "$1")
cc=$2
source=$(realpath "$3")
python=$(command -v python3) || { echo "check_python: skipped: there is no python3"; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
"$cc" -O1 -shared -fPIC -fopenmp "$source" -o libsum.so || exit 1

cat >uses.py <<'SCRIPT'
import ctypes, multiprocessing, os, sys, threading

lib = ctypes.CDLL(os.path.abspath("libsum.so"))

def uses(number):
    """A flat, a crowded and a nested team; wrong sums are told by the number."""
    for outer, inner in ((2, 1), (9, 1), (3, 4)):
        got = lib.team_sum(outer, inner, number)
        if got != outer * inner * number:
            return -1
    return number

def main():
    context = multiprocessing.get_context("fork")
    numbers = list(range(1, 17))
    assert [uses(n) for n in numbers] == numbers, "wrong sums"
    with context.Pool(3) as pool:
        assert pool.map(uses, numbers, chunksize=2) == numbers, "wrong sums in children"
    # Forked by a thread that is not the main one, beside regions of main.
    results = []
    def forks():
        uses(5)
        with context.Pool(2) as pool:
            results.append(pool.map(uses, numbers) == numbers)
    thread = threading.Thread(target=forks)
    thread.start()
    for n in numbers: assert uses(n) == n
    thread.join()
    assert results == [True], results
    assert [uses(n) for n in numbers] == numbers, "wrong sums afterwards"
    loaded = {line.split()[-1] for line in open("/proc/self/maps") if "libgomp" in line}
    assert loaded == {sys.argv[1]}, loaded
    print("all well")

main()
SCRIPT

output=$(LD_LIBRARY_PATH=$(dirname "$library") timeout 100 "$python" uses.py "$(realpath "$library")" 2>&1)
status=$?
if [ "$status" -ne 0 ] || [ "$output" != "all well" ]; then
  echo "check_python: status $status: $output"
  exit 1
fi
echo "check_python: all well"
