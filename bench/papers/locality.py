# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the lab shows of a table: where the memory is that threads use, counted access by access in a virtual NUMA machine."""

import csv
import io
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Callable, NamedTuple

import twisted
from lanes import BenchError, Programs
from locality_counts import local_share

from .model import Counted, Table

WORDS = ("counted in the lab, an emulated machine of 4 NUMA nodes with 4 CPUs each: per cent of accesses or of threads;"
         " these are counts and no times, and an emulated machine has none that mean anything")
# Few passes: each access is emulated. Waits are long there, and are not measured.
# What is small enough to be counted would be put on a node by the huge page, 512 pages at once; the papers' kernels had none.
SMALL_PAGES = "transparent_hugepage=never"
SETTINGS = {"BENCH_BUDGET_MS": "1", "BENCH_SAMPLE_MS": "1", "BENCH_WARM_MS": "1"}


class Share(NamedTuple):
    title: str
    percent: float


def program_paths(table: Table, programs: Programs, bosk: Path, folder: Path, tell: Callable[[str], None]) -> dict[str, Path]:
    wanted = {counted.program for counted in table.counted}
    own = {twisted.STREAM, twisted.BUBBLES}
    if wanted & own:
        tell("compiling")
        twisted.compile_programs(folder, bosk)
    programs.build(tell, ("gcc",), sorted(wanted - own))
    return {name: folder / name if name in own else (programs.folder / "gcc" / name).resolve() for name in wanted}


def printed_shares(bosk: Path, command: str, title: str) -> list[Share]:
    """Of a program that counts by itself."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "BOSK_", "GOMP_"))}
    done = subprocess.run([bosk.resolve(), "lab", "--mem", "512M", *[word for pair in SETTINGS.items() for word in ("--env", "=".join(pair))],
                           "--append", "numa_balancing=disable", "--", "bash", "-c", command],
                          env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"the lab ended with {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
    lines = [line.split() for line in done.stdout.splitlines()]
    return [Share(f"{title}: {words[0]}", float(words[1])) for words in lines if len(words) == 3 and words[2] == "%"]


def count(table: Table, programs: Programs, bosk: Path, tell: Callable[[str], None]) -> list[Share]:
    """The local shares of all that the table has for the lab; each start of the machine counts several runs."""
    with tempfile.TemporaryDirectory() as folder:
        paths = program_paths(table, programs, bosk, Path(folder), tell)

        def command(counted: Counted) -> str:
            return f"{counted.before} {paths[counted.program]} {counted.args}"

        shares = []
        by_access = [counted for counted in table.counted if counted.objects]
        if by_access:
            tell(f"{len(by_access)} runs in the lab")
            found = twisted.counted_in_lab(bosk, [], {**SETTINGS, **dict(table.counted_env)},
                                           [f'"$BOSK_LAB_COUNT" {command(counted)}' for counted in by_access], SMALL_PAGES)
            shares += [Share(counted.title, local_share(one, counted.objects)) for counted, one in zip(by_access, found)]
        for counted in table.counted:
            if not counted.objects:
                tell(f"in the lab: {counted.title}")
                shares += printed_shares(bosk, command(counted), counted.title)
        return shares


def shares_text(shares: list[Share]) -> list[str]:
    width = max(len(share.title) for share in shares)
    return [f"ours: {WORDS}", *[f"{share.title.ljust(width)}  {share.percent:6.2f} %" for share in shares]]


def shares_csv(shares: list[Share]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("run", "counted, %"))
    writer.writerows((share.title, f"{share.percent:.4g}") for share in shares)
    return out.getvalue()
