#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What bosk run --learn=observe costs, and how much it finds: ./dev bench learn [PROGRAM…].

  ./dev bench learn                      8 programs, 20 interleaved pairs of runs each: half an hour; then known patterns
  ./dev bench learn -n 5 stencil huge    some programs, 5 pairs
  ./dev bench learn --patterns           the patterns alone
  ./dev bench learn --lab [PATTERN…]     how much comes to be local, counted in a virtual NUMA machine, against what else could
                                         be done and an oracle: half an hour

Overhead: the mean over pairs of observed / alone, both on bosk, with its 95 % confidence interval; beside it what the observer says itself. The floor
is 1. Patterns: Pearson's correlation of the matrix with what the program knows of its own writes, over pairs of threads; 1 is the truth."""

import argparse
import csv
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import learn_lab

REPO = Path(__file__).resolve().parent.parent
BOSK = REPO / "build" / "bin" / "bosk"
# How many times their work: some five seconds on two CPUs. (Starting costs 9 ms, whatever comes after.)
PROGRAMS = {"stencil": 10, "huge": 10, "matrix": 32, "random": 26, "blocks": 24, "tasks": 16, "pipeline": 40, "forks": 12}
PATTERNS = [(pattern, threads, events) for pattern in ("ring", "far") for threads in (4, 8, 16) for events in ("on", "off")]
SECONDS = 1  # of a pattern's run
# Of Student's distribution, 97.5 %, by degrees of freedom.
STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 7: 2.36, 9: 2.26, 14: 2.14, 19: 2.09, 29: 2.05}


def compile_program(folder: Path, source: Path) -> Path:
    program = folder / source.stem
    subprocess.run(["gcc", "-O2", "-fopenmp", "-pthread", source, "-o", program], check=True)
    return program


def run(command, **variables):
    """Seconds, output and the page."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("OMP_", "GOMP_", "BOSK_", "LD_"))}
    began = time.monotonic()
    done = subprocess.run(command, env=environment | variables, capture_output=True, text=True)
    took = time.monotonic() - began
    if done.returncode != 0:
        sys.exit(f"{command}: status {done.returncode}\n{done.stderr}")
    return took, done.stdout, done.stderr


def interval(values):
    freedom = len(values) - 1
    student = STUDENT[max((known for known in STUDENT if known <= freedom), default=1)]
    return student * statistics.stdev(values) / math.sqrt(len(values))


def overheads(names, pairs, folder):
    work = compile_program(folder, REPO / "bench" / "programs" / "learn_work.c")
    means = []
    print(f"{'program':<10} {'alone':>8} {'observed / alone':>24} {'median':>8} {'says':>7}")
    for name in names:
        ratios, alone, said = [], [], []
        for pair in range(pairs):
            took = {}
            # The one that is first is the one that was last before.
            for observed in ((False, True) if pair % 2 == 0 else (True, False)):
                options = ["--learn=observe"] if observed else []
                took[observed], output, page = run([BOSK, "run", *options, work, name, str(PROGRAMS[name])])
                if pair == 0 and not observed:
                    wanted = output
                if observed:
                    if output != wanted:
                        sys.exit(f"{name}: observed it prints {output}, alone {wanted}")
                    said.append(float(re.search(r"^cost +([0-9.]+) %", page, re.M).group(1)))
            ratios.append(took[True] / took[False])
            alone.append(took[False])
        mean = statistics.mean(ratios)
        means.append(mean)
        spread = f"± {interval(ratios):.3f}" if pairs > 1 else ""
        print(f"{name:<10} {statistics.median(alone):>6.2f} s {mean:>14.3f} {spread:>9} {statistics.median(ratios):>8.3f}"
              f" {statistics.median(said):>5.2f} %", flush=True)
    print(f"{'mean':<10} {'':>8} {statistics.mean(means):>14.3f}   worst {max(means):.3f}\n")


def correlation(truth, matrix):
    lines = [line.split() for line in truth.splitlines()]
    seen = {row["thread"]: row for row in csv.DictReader(matrix.splitlines())}
    known, found = [], []
    for i, line in enumerate(lines):
        for j in range(i):
            known.append(float(line[1 + j]))
            found.append(float(seen.get(line[0], {}).get(lines[j][0], 0)))
    if len(set(known)) < 2 or len(set(found)) < 2:
        return 0.0
    return statistics.correlation(known, found)


def patterns(runs, folder):
    program = compile_program(folder, REPO / "tests" / "run" / "learn_pattern.c")
    print(f"{'pattern':<8} {'threads':>7} {'events':>6} {'correlation':>12} {'least':>7} {'accesses/s':>11} {'cost':>7}")
    for pattern, threads, events in PATTERNS:
        found, rates, costs = [], [], []
        for _ in range(runs):
            recording = folder / "recording"
            _, truth, page = run([BOSK, "run", "--learn=observe", "--record", recording, program, pattern, str(threads),
                                  str(SECONDS)], BOSK_LEARN_EVENTS=events)
            _, matrix, _ = run([BOSK, "learn", recording, "--csv", "-"])
            found.append(correlation(truth, matrix))
            rates.append(float(re.search(r"^seen +([0-9]+)", page, re.M).group(1)) / SECONDS)
            costs.append(float(re.search(r"^cost +([0-9.]+) %", page, re.M).group(1)))
        print(f"{pattern:<8} {threads:>7} {events:>6} {statistics.median(found):>12.3f} {min(found):>7.3f}"
              f" {statistics.median(rates):>11.0f} {statistics.median(costs):>5.2f} %", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench learn", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"{', '.join(PROGRAMS)}; with --lab {', '.join(learn_lab.PATTERNS)}")
    parser.add_argument("-n", type=int, metavar="RUNS", help="pairs of runs of each program (20); with --lab, runs (3)")
    parser.add_argument("--patterns", action="store_true", help="the patterns alone")
    lab = parser.add_argument_group("with --lab")
    lab.add_argument("--lab", action="store_true", help="count accesses in the lab")
    lab.add_argument("--openmp", action="store_true", help="a team of OpenMP on bosk, not pthreads")
    lab.add_argument("--lanes", metavar="LANE,…", help=f"some of {', '.join(learn_lab.LANES)}")
    lab.add_argument("--seconds", type=float, default=20, help="of the guest that a program runs (20)")
    lab.add_argument("--settles", type=float, default=0, help="of these, so many are not counted: what it comes to (0)")
    lab.add_argument("--balancing", action="store_true",
                     help="the kernel balances by itself, as it does by default where there are nodes: what it sees of reads counts, too")
    lab.add_argument("--khugepaged", action="store_true",
                     help="at work as by default, which joins in 10 s whatever was split; learning takes a hundred times as long in the emulator")
    lab.add_argument("--kernel", default="newer", help="as of bosk lab (newer); debian: Debian 12's, where soft-dirty marks are what tells of writes")
    lab.add_argument("--kib", type=int, default=256, help="a thread's block of memory (256)")
    lab.add_argument("--overhead", default="100",
                     help="BOSK_LEARN_OVERHEAD, per cent (100): the emulator takes longer for what is done seldom than a processor")
    options = parser.parse_args()
    options.n = options.n if options.n is not None else 3 if options.lab else 20
    known = learn_lab.PATTERNS if options.lab else PROGRAMS
    unknown = [name for name in options.programs if name not in known]
    if unknown or options.n < 1:
        parser.error(f"there is no program {unknown[0]}: {', '.join(known)}" if unknown else "-n: 1 or more")
    if options.lab:
        unknown = [lane for lane in (options.lanes or "os").split(",") if lane not in learn_lab.LANES]
        if unknown:
            parser.error(f"there is no lane {unknown[0]}: {', '.join(learn_lab.LANES)}")
        return learn_lab.table(BOSK, options)
    with tempfile.TemporaryDirectory() as folder:
        if not options.patterns:
            overheads(options.programs or PROGRAMS, options.n, Path(folder))
        if options.patterns or not options.programs:
            patterns(min(options.n, 5), Path(folder))
    return None


if __name__ == "__main__":
    main()
