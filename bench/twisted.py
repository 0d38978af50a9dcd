#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the data of Twisted-STREAM's second phase are to the threads that use them (Broquedis 2009, section 4.4):
counted in the lab, access by access, in one machine after the other runtime's or variant's (docs/memory.md).

  ./dev bench stream --lab                 4 nodes of 4 CPUs, a team of 4 for each, 512 KiB a team's vector
  ./dev bench stream --lab --nodes 8 --kib 8192 --passes 60
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple, Optional

from locality_counts import local_share

REPO = Path(__file__).resolve().parent.parent
SKIPPED = 77
STREAM, BUBBLES = "stream", "twisted_bubbles"
BOUND = "bosk run --bind=spread,close"
# Members of nested teams share kernel threads, and these variants bind the one that they are on.
OWN_THREADS = f"env BOSK_IDENTITY=kthread {BOUND}"
# BOSK_MEMORY_MOVES, for teams that tell what they work on and no more.
TEAM_MOVES = {
    "auto": "left to the policy",
    "threads": "only threads may move",
    "data": "only data may move",
    "mixed": "threads, and data after them",
    "next-touch": "only by next-touch",
}

# Of these --check judges some of each kind, by the least share. Where only threads may move, what the first phase has touched from a
# wrong node stays there.
JUDGED_TEAMS = {
    ("all", "auto", False): 95, ("all", "auto", True): 95, ("two", "auto", False): 95, ("two", "auto", True): 95,
    ("all", "threads", True): 75, ("all", "data", False): 95, ("two", "mixed", True): 95,
}


class Run(NamedTuple):
    title: str
    prefix: str    # what stands before the program
    program: str
    data: str      # which vectors change hands
    variant: str
    least: Optional[int] = None  # local share in per cent; None: not judged
    most: int = 100
    many: bool = False  # each pass is an inner region of its own

    def words(self) -> str:
        regions = "many" if self.many else "one"
        return f"{self.title} {self.data} {self.variant} {regions}"


def runs() -> list:
    policy = "bosk run --policy memory"
    listed = [
        # Where the kernel has its threads by chance: a quarter is near in the mean, and single runs differ widely.
        Run("libgomp", "", STREAM, "all", "nothing", 0, 75),
        Run("bosk, nothing moved", BOUND, STREAM, "all", "nothing", 0, 40),
        Run("bosk, threads moved", OWN_THREADS, STREAM, "all", "threads", 95),
        Run("bosk, data moved", BOUND, STREAM, "all", "memory", 95),
        Run("bosk, data by next-touch", BOUND, STREAM, "all", "next-touch", 95),
        Run("bubbles, data by next-touch", policy, BUBBLES, "all", "next-touch"),
        Run("bubbles, left to the policy", policy, BUBBLES, "all", "policy", 95),
        Run("bubbles, only threads may move", f"env BOSK_MEMORY_MOVES=threads {policy}", BUBBLES, "all", "policy"),
        # One vector is the team's own still: by chance more than a quarter of that is near.
        Run("libgomp", "", STREAM, "two", "nothing", 0, 85),
        Run("bosk, nothing moved", BOUND, STREAM, "two", "nothing", 0, 60),
        Run("bosk, both vectors moved", BOUND, STREAM, "two", "both", 95),
        Run("bosk, mixed", OWN_THREADS, STREAM, "two", "mixed", 95),
        Run("bosk, data by next-touch", BOUND, STREAM, "two", "next-touch", 95),
        Run("bubbles, left to the policy", policy, BUBBLES, "two", "policy", 95),
    ]
    for data in ("all", "two"):
        for many in (False, True):
            for moves, title in TEAM_MOVES.items():
                least = JUDGED_TEAMS.get((data, moves, many))
                listed.append(Run(f"teams, {title}", f"env BOSK_MEMORY_MOVES={moves} {policy}", STREAM, data, "policy",
                                  least, many=many))
    return listed


def parse_arguments(argv: list) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--kib", type=int, default=2048, help="all teams' parts of one vector (2048)")
    parser.add_argument("--passes", type=int, default=40, help="of the second phase (40)")
    parser.add_argument("--settles", type=int, default=0, metavar="PASSES",
                        help="how many of these go by before accesses are counted: what it comes to, moving not included (0)")
    parser.add_argument("--only", metavar="WORD", default="", help="runs with this in their line")
    parser.add_argument("--kernel", default="auto",
                        help="the lab's: auto, or newer, where next-touch is done by userfaultfd (auto)")
    parser.add_argument("--bosk", type=Path, default=REPO / "build" / "bin" / "bosk")
    parser.add_argument("--programs", type=Path,
                        help="folder of stream and twisted_bubbles (not given: they are compiled)")
    parser.add_argument("--check", action="store_true",
                        help="only what is judged, and what is left to the policy three times with twice the passes, of which the "
                             "last half count; fail where a share is not what it must be")
    return parser.parse_args(argv)


def compile_programs(folder: Path, bosk: Path) -> None:
    library = bosk.resolve().parent.parent / "lib"
    for name, flags in ((STREAM, ["-fopenmp"]),
                        (BUBBLES, ["-Wl,--no-as-needed", f"-L{library}", "-l:libgomp.so.1"])):
        subprocess.run(["gcc", "-O2", f"-I{REPO / 'include'}", "-o", folder / name,
                        REPO / "bench" / "programs" / f"{name}.c", *flags], check=True)


def times_of(args: argparse.Namespace, run: Run) -> int:
    """How often to run it: where somebody decides beside those who work, what is judged is the median."""
    if not args.check or run.variant != "policy":
        return 1
    # Where data may not move, what the first phase has put on a wrong node by chance stays there: one run in ten is below 80 %.
    return 5 if "MOVES=threads" in run.prefix else 3


def command_of(run: Run, folder: Path, passes: int, nodes: int) -> str:
    twisted, regions = ("twisted ", f" {passes}" if run.many else "") if run.program == STREAM else ("", "")
    return f"{run.prefix} {folder / run.program} {twisted}{run.data} {run.variant} {passes} {nodes} 4{regions}"


def counted_in_lab(bosk: Path, lab_options: list, settings: dict, commands: list, kernel_words: str = "") -> list:
    """Runs the commands in one virtual machine, one after the other; what was counted of each (docs/locality.md)."""
    lines = ["set -e"]
    for command in commands:
        # Settings of one command stand before it.
        lines += ['rm -f "$BOSK_LAB_OBJECTS"', command]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "BOSK_", "GOMP_"))}
    # Waiting threads sleep: those that poll take the lab's one host thread from those that work.
    environment |= {"OMP_WAIT_POLICY": "passive"} | settings
    with tempfile.TemporaryDirectory() as output:
        # The kernel's own balancing would move pages as well.
        done = subprocess.run(
            [bosk.resolve(), "lab", *lab_options, "--mem", "512M", *[word for name in settings for word in ("--env", name)],
             "--append", f"numa_balancing=disable {kernel_words}", "--locality=objects", "--output", output, "--", "bash", "-c", "\n".join(lines)],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"the lab ended with {done.returncode}:\n{done.stdout}")
        names = ["locality.json"] + [f"locality-{i}.json" for i in range(2, len(commands) + 1)]
        return [json.loads((Path(output) / name).read_text()) for name in names]


def count_all(args: argparse.Namespace, wanted: list, folder: Path) -> list:
    """The local shares of each run, in per cent."""
    commands = []
    for run in [run for run in wanted for _ in range(times_of(args, run))]:
        passes, settles = args.passes, args.settles
        # What is judged is what the share returns to. How soon depends on how long the emulator takes to interrupt its CPUs, where
        # somebody decides beside those who work.
        if args.check and run.variant == "policy":
            passes, settles = 2 * passes, max(settles, passes)
        commands.append(f'STREAM_SETTLES={settles} "$BOSK_LAB_COUNT" {command_of(run, folder, passes, args.nodes)}')
    counted = counted_in_lab(args.bosk, ["--kernel", args.kernel, "--nodes", str(args.nodes)], {"STREAM_KIB": str(args.kib)}, commands)
    shares = iter([local_share(each, "set ") for each in counted])
    return [[next(shares) for _ in range(times_of(args, run))] for run in wanted]


def main(argv: list) -> int:
    args = parse_arguments(argv)
    if shutil.which("qemu-system-x86_64") is None:
        print("twisted: skipped: there is no qemu-system-x86_64")
        return SKIPPED
    wanted = [run for run in runs() if args.only in run.words() and not (args.check and run.least is None)]
    if not wanted:
        sys.exit(f"twisted: no run has {args.only!r} in its line")
    with tempfile.TemporaryDirectory() as folder:
        if args.programs is None:
            compile_programs(Path(folder), args.bosk)
        shares = count_all(args, wanted, args.programs.resolve() if args.programs else Path(folder))
    print(f"Twisted-STREAM, {args.nodes} nodes of 4 CPUs: {args.nodes} teams of 4, {args.passes} passes of triad"
          f" over {args.kib // args.nodes} KiB a vector and team")
    print(f"{'second phase: local, % of accesses':36}{'vectors that changed hands':>28}{'inner regions':>15}{'local':>9}")
    failed = False
    for run, runs_of_it in zip(wanted, shares):
        share = statistics.median(runs_of_it)
        wrong = args.check and not run.least <= share <= run.most
        failed |= wrong
        print(f"{run.title:36}{'all three' if run.data == 'all' else 'two of three':>28}{'many' if run.many else 'one':>15}{share:9.2f}"
              f"{f'   ({min(runs_of_it):.2f} to {max(runs_of_it):.2f})' if len(runs_of_it) > 1 else ''}"
              f"{f'   not {run.least} to {run.most}' if wrong else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
