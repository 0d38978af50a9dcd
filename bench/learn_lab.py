# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What bosk run --learn makes local, against what is known of programs that share memory in patterns (bench/programs/patterns.c): every access to
their blocks is counted in the lab (docs/locality.md), on 4 nodes of 4 CPUs, learning and moving included."""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from locality_counts import local_share
from twisted import counted_in_lab

REPO = Path(__file__).resolve().parent.parent
PATTERNS = ("private", "neighbours", "far", "all", "pipeline", "producer", "phases")
# Column: where the threads go, and how it is run. "os" is doing nothing.
LANES = {
    "os": ("none", None), "compact": ("compact", None), "scatter": ("scatter", None), "random": ("random", None),
    "threads": ("none", "threads"), "data": ("none", "data"), "both": ("none", "both"), "oracle": ("oracle", None),
}
KHUGEPAGED = "/sys/kernel/mm/transparent_hugepage/khugepaged"
# Of doing nothing, and of the oracle where that gains GAINS or more: in points.
NOT_WORSE, NEAR, GAINS = 1, 5, 10


def compile_patterns(folder: Path, openmp: bool) -> Path:
    program = folder / "patterns"
    subprocess.run(["gcc", "-O2", f"-I{REPO / 'include'}", "-fopenmp" if openmp else "-pthread", "-o", program,
                    REPO / "bench" / "programs" / "patterns.c"], check=True)
    return program


def command_of(bosk: Path, program: Path, pattern: str, lane: str, run: int, options) -> str:
    place, learns = LANES[lane]
    if place == "random":
        place = f"random={run + 1}"
    learning = f"BOSK_LEARN_OVERHEAD={options.overhead} {bosk} run --learn={learns} --report /dev/null" if learns else ""
    return f'{learning} "$BOSK_LAB_COUNT" {program} {pattern} {place} {options.seconds} {options.settles}'


def table(bosk: Path, options) -> None:
    patterns = options.programs or PATTERNS
    lanes = options.lanes.split(",") if options.lanes else list(LANES)
    shares = {}
    with tempfile.TemporaryDirectory() as folder:
        program = compile_patterns(Path(folder), options.openmp)
        for run in range(options.n):
            for pattern in patterns:
                commands = [command_of(bosk, program, pattern, lane, run, options) for lane in lanes]
                if options.balancing:
                    commands[0] = f"echo 1 >/proc/sys/kernel/numa_balancing; {commands[0]}"
                if not options.khugepaged:
                    commands[0] = f"echo 3600000 >{KHUGEPAGED}/scan_sleep_millisecs; {commands[0]}"
                counted = counted_in_lab(bosk, ["--kernel", options.kernel, "--nodes", "4", "--cpus-per-node", "4"],
                                         {"PATTERN_KIB": str(options.kib)}, commands)
                for lane, each in zip(lanes, counted):
                    shares.setdefault((pattern, lane), []).append(local_share(each, "blocks"))
                print(f"run {run + 1}, {pattern}: " + ", ".join(f"{lane} {shares[pattern, lane][-1]:.1f}" for lane in lanes),
                      file=sys.stderr, flush=True)
    print(f"{'team' if options.openmp else 'pthreads'}, 16 threads on 4 nodes of 4 CPUs, {options.kib} KiB a block, {options.seconds:g} s"
          f"{f', counted from {options.settles:g} s on' if options.settles else ''}; khugepaged {'at work' if options.khugepaged else 'asleep'}"
          f"{', the kernel balances, too' if options.balancing else ''}; kernel: {options.kernel}; "
          f"local, % of accesses, median of {options.n}")
    print(f"{'':<11}" + "".join(f"{lane:>9}" for lane in lanes))
    for pattern in patterns:
        line = {lane: statistics.median(shares[pattern, lane]) for lane in lanes}
        notes = []
        if "os" in line and "both" in line and line["both"] < line["os"] - NOT_WORSE:
            notes.append("worse than nothing")
        if {"os", "both", "oracle"} <= line.keys() and line["oracle"] >= line["os"] + GAINS and line["both"] < line["oracle"] - NEAR:
            notes.append(f"{line['oracle'] - line['both']:.1f} points to the oracle")
        print(f"{pattern:<11}" + "".join(f"{line[lane]:>9.1f}" for lane in lanes) + ("   " + ", ".join(notes) if notes else ""))
