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

from locality_counts import local_share

REPO = Path(__file__).resolve().parent.parent
SKIPPED = 77
STREAM, BUBBLES = "stream", "twisted_bubbles"
BOUND = "bosk run --bind=spread,close"
# Members of nested teams share kernel threads, and these variants bind the one that they are on.
OWN_THREADS = f"env BOSK_IDENTITY=kthread {BOUND}"


def runs() -> list:
    """(title, what stands before the program, which program, which data change hands, variant, least and most
    local share in per cent; None: not judged)."""
    policy = "bosk run --policy memory"
    only_threads = f"env BOSK_MEMORY_MOVES=threads {policy}"
    return [
        ("libgomp", "", STREAM, "all", "nothing", 0, 40),
        ("bosk, nothing moved", BOUND, STREAM, "all", "nothing", 0, 40),
        ("bosk, threads moved", OWN_THREADS, STREAM, "all", "threads", 95, 100),
        ("bosk, data moved", BOUND, STREAM, "all", "memory", 95, 100),
        ("bosk, data by next-touch", BOUND, STREAM, "all", "next-touch", 95, 100),
        ("teams, left to the policy", policy, STREAM, "all", "policy", 95, 100),
        # The opener of a team stays on its worker: one of four is where its data are not.
        ("teams, only threads may move", only_threads, STREAM, "all", "policy", None, None),
        ("bubbles, data by next-touch", policy, BUBBLES, "all", "next-touch", None, None),
        ("bubbles, left to the policy", policy, BUBBLES, "all", "policy", 95, 100),
        ("bubbles, only threads may move", only_threads, BUBBLES, "all", "policy", None, None),
        # One vector is the team's own still: by chance more than a quarter of that is near.
        ("libgomp", "", STREAM, "two", "nothing", 0, 60),
        ("bosk, nothing moved", BOUND, STREAM, "two", "nothing", 0, 60),
        ("bosk, both vectors moved", BOUND, STREAM, "two", "both", 95, 100),
        ("bosk, mixed", OWN_THREADS, STREAM, "two", "mixed", 95, 100),
        ("bosk, data by next-touch", BOUND, STREAM, "two", "next-touch", 95, 100),
        ("teams, left to the policy", policy, STREAM, "two", "policy", 95, 100),
        ("bubbles, left to the policy", policy, BUBBLES, "two", "policy", 95, 100),
    ]


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


def times_of(args: argparse.Namespace, run: tuple) -> int:
    """How often to run it: where somebody decides beside those who work, what is judged is the median."""
    return 3 if args.check and run[4] == "policy" else 1


def count_all(args: argparse.Namespace, wanted: list, folder: Path) -> list:
    """The local shares of each run, in per cent."""
    repeated = [run for run in wanted for _ in range(times_of(args, run))]
    lines = ["set -e"]
    for _, prefix, program, data, variant, _, _ in repeated:
        words = "twisted" if program == STREAM else ""
        passes, settles = args.passes, args.settles
        # What is judged is what the share returns to. How soon depends on how long the emulator takes to interrupt its CPUs, where
        # somebody decides beside those who work.
        if args.check and variant == "policy":
            passes, settles = 2 * passes, max(settles, passes)
        lines.append('rm -f "$BOSK_LAB_OBJECTS"')
        lines.append(f'STREAM_SETTLES={settles} "$BOSK_LAB_COUNT" {prefix} {folder / program} {words} {data} {variant} '
                     f"{passes} {args.nodes} 4")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "BOSK_", "GOMP_"))}
    # Waiting threads sleep: those that poll take the lab's one host thread from those that work.
    environment |= {"OMP_WAIT_POLICY": "passive", "STREAM_KIB": str(args.kib)}
    with tempfile.TemporaryDirectory() as output:
        # The kernel's own balancing would move pages as well.
        done = subprocess.run(
            [args.bosk.resolve(), "lab", "--kernel", args.kernel, "--nodes", str(args.nodes), "--mem", "512M",
             "--env", "STREAM_KIB", "--append", "numa_balancing=disable", "--locality=objects", "--output", output, "--", "bash",
             "-c", "\n".join(lines)],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"twisted: the lab ended with {done.returncode}:\n{done.stdout}")
        names = ["locality.json"] + [f"locality-{i}.json" for i in range(2, len(repeated) + 1)]
        shares = iter([local_share(json.loads((Path(output) / name).read_text()), "set ") for name in names])
        return [[next(shares) for _ in range(times_of(args, run))] for run in wanted]


def main(argv: list) -> int:
    args = parse_arguments(argv)
    if shutil.which("qemu-system-x86_64") is None:
        print("twisted: skipped: there is no qemu-system-x86_64")
        return SKIPPED
    wanted = [run for run in runs() if args.only in f"{run[0]} {run[3]} {run[4]}"
              and not (args.check and run[5] is None)]
    if not wanted:
        sys.exit(f"twisted: no run has {args.only!r} in its line")
    with tempfile.TemporaryDirectory() as folder:
        if args.programs is None:
            compile_programs(Path(folder), args.bosk)
        shares = count_all(args, wanted, args.programs.resolve() if args.programs else Path(folder))
    print(f"Twisted-STREAM, {args.nodes} nodes of 4 CPUs: {args.nodes} teams of 4, {args.passes} passes of triad"
          f" over {args.kib // args.nodes} KiB a vector and team")
    print(f"{'second phase: local, % of accesses':36}{'vectors that changed hands':>28}{'local':>9}")
    failed = False
    for (title, _, _, data, _, least, most), runs_of_it in zip(wanted, shares):
        share = statistics.median(runs_of_it)
        wrong = args.check and not least <= share <= most
        failed |= wrong
        print(f"{title:36}{'all three' if data == 'all' else 'two of three':>28}{share:9.2f}"
              f"{f'   ({min(runs_of_it):.2f} to {max(runs_of_it):.2f})' if len(runs_of_it) > 1 else ''}"
              f"{f'   not {least} to {most}' if wrong else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
