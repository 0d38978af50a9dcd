# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables and figures of the papers that bosk is made after, measured on this machine, with the published values beside.

  ./dev bench papers                       all of them; --quick: short samples, three rounds, fewer sizes
  ./dev bench papers 2005 'goglin-*'       of one paper, or by name; --list has the names and what each needs
  ./dev bench papers 2009 --lab            where memory is to its threads, counted in a virtual NUMA machine, instead of times
"""

import argparse
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Optional

from lanes import BenchError, Lane, Programs, resolved_library
from run import FULL_ENV, QUICK_ENV, CpuTimes

from . import locality, output
from .machine import in_words, this_machine
from .measure import Measurement, Setting, measure
from .model import Machine, Table
from .published import PAPERS
from .tables import UnknownTable, choose

REPO = Path(__file__).resolve().parent.parent.parent
UNUSABLE = 2
BUSY = " (other work was running: figures of several threads say little)"


class Refusal(Exception):
    """Nothing can be done as asked; its text says what to do."""


class Progress:
    """On stderr: a line that is rewritten on a terminal, else one every ten seconds at most."""

    def __init__(self) -> None:
        self.rewrite, self.last, self.what = sys.stderr.isatty(), 0.0, ""

    def begin(self, what: str) -> None:
        self.what, self.last = what, time.monotonic()
        if not self.rewrite:
            print(f"papers: {what}", file=sys.stderr, flush=True)

    def tell(self, text: str) -> None:
        now = time.monotonic()
        if self.rewrite:
            print(f"\r\033[K{self.what}: {text[:100]}", end="", file=sys.stderr, flush=True)
        elif now - self.last >= 10:
            self.last = now
            print(f"papers: {self.what}: {text}", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self.rewrite:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench papers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="names of tables, * and ? allowed, or of papers; default: all")
    parser.add_argument("--quick", action="store_true", help="short samples, 3 rounds, fewer sizes")
    parser.add_argument("--list", action="store_true", help="print the tables and what each needs")
    parser.add_argument("--lab", action="store_true", help="count what is local in a virtual NUMA machine instead of measuring")
    parser.add_argument("--out", metavar="DIR", type=Path, default=REPO / "build" / "bench" / "papers",
                        help="folder for tables.txt, a CSV for each table and an SVG for each figure (build/bench/papers)")
    parser.add_argument("--runs", type=int, metavar="N", help="rounds (5; quick: 3)")
    parser.add_argument("--build", metavar="DIR", type=Path, default=REPO / "build", help="folder with bosk's lib and bin (build)")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one process (300)")
    args = parser.parse_args(argv)
    args.runs = (3 if args.quick else 5) if args.runs is None else args.runs
    if args.runs < 1:
        parser.error("--runs: at least 1")
    if args.timeout <= 0:
        parser.error("--timeout: more than 0 seconds")
    return args


def list_tables(tables: list[Table]) -> list[str]:
    rows = [(table.name, PAPERS[table.paper].who, table.title, f"needs: {table.needs}", "--lab" if table.counted else "")
            for table in tables]
    return output.aligned(rows)


def check_tools(args: argparse.Namespace, programs: Programs, tell) -> None:
    library = args.build / "lib" / "libgomp.so.1"
    if not library.exists():
        raise Refusal(f"there is no {library}: ./dev build makes it, or --build DIR names the folder of another build")
    if shutil.which("gcc") is None:
        raise Refusal("there is no gcc to compile the programs with: ./dev setup installs it")
    if args.lab and shutil.which("qemu-system-x86_64") is None:
        raise Refusal("there is no qemu-system-x86_64, which --lab needs: ./dev setup installs it")
    programs.build(tell, ("gcc",), ["nested"])
    lane = Lane("bosk", "openmp", "gcc", str(args.build / "lib"))
    found = resolved_library(programs.path("nested", lane), lane, "libgomp.so.1")
    if Path(found).resolve() != library.resolve():
        raise Refusal(f"the linker takes {found or 'nothing'} instead of {library}: is that a library for this machine?")


class Writer:
    """The files, each written as soon as it is known; tables are printed besides."""

    def __init__(self, folder: Path, text_name: str):
        self.folder, self.text_name = folder, text_name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / text_name).write_text("", encoding="utf-8")
        except OSError as error:
            raise Refusal(f"--out {folder}: {error.strerror}; name a folder that can be written") from error

    def show(self, text: str) -> None:
        print(text, flush=True)
        with open(self.folder / self.text_name, "a", encoding="utf-8") as file:
            file.write(text + "\n")

    def keep(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")


def in_rounds(args: argparse.Namespace) -> str:
    return f"{args.runs} round{'s' if args.runs > 1 else ''}{', quick' if args.quick else ''}"


def do_native(table: Table, machine: Machine, setting: Setting, args: argparse.Namespace, writer: Writer,
              progress: Progress) -> bool:
    """Whether all that was to be measured could be."""
    words = f"{in_words(machine)}; {in_rounds(args)}"
    missing = table.one_node if len(machine.nodes) < 2 else ""
    measurement: Optional[Measurement] = None
    if len(machine.nodes) >= table.nodes:
        progress.begin(table.name)
        measurement = measure(table, machine, setting, args.quick, args.runs, progress.tell)
        progress.clear()
    writer.show(output.table_text(table, measurement, missing))
    writer.keep(f"{table.name}.csv", output.table_csv(table, measurement))
    if table.figure and measurement:
        writer.keep(f"{table.name}.svg", output.figure_svg(table, words, measurement, missing))
    return not (measurement and measurement.failures())


def do_lab(table: Table, programs: Programs, args: argparse.Namespace, writer: Writer, progress: Progress) -> bool:
    out = [f"== {table.name}: {table.title} =="]
    if not table.counted:
        writer.show("\n".join([*out, "the lab has nothing to count for this one: it is about times only", ""]))
        return True
    progress.begin(f"{table.name} in the lab")
    try:
        shares = locality.count(table, programs, args.build / "bin" / "bosk", progress.tell)
    except (BenchError, SystemExit) as error:
        progress.clear()
        writer.show("\n".join([*out, f"FAILED {error}", ""]))
        return False
    progress.clear()
    writer.show("\n".join([*out, *locality.shares_text(shares), ""]))
    writer.keep(f"{table.name}-lab.csv", locality.shares_csv(shares))
    return True


def do_all(tables: list[Table], args: argparse.Namespace, progress: Progress) -> bool:
    machine = this_machine()
    programs = Programs(REPO / "build" / "bench", args.build / "bin")
    progress.begin("preparing")
    check_tools(args, programs, progress.tell)
    writer = Writer(args.out, "tables-lab.txt" if args.lab else "tables.txt")
    before = CpuTimes()
    time.sleep(0.5)
    if not args.lab:
        busy = before.busy()
        writer.show(f"{in_words(machine)}; {busy:g} % busy before{BUSY if busy > 15 else ''}; {in_rounds(args)}\n")
    setting = Setting(programs, args.build, dict(QUICK_ENV if args.quick else FULL_ENV), args.timeout)
    good = True
    for table in tables:
        if args.lab:
            good = do_lab(table, programs, args, writer, progress) and good
        else:
            good = do_native(table, machine, setting, args, writer, progress) and good
    print(f"written to {args.out}")
    return good


def main(argv: list[str]) -> int:
    args = parse_arguments(argv)
    progress = Progress()
    try:
        tables = choose(args.tables)
        if args.list:
            print("\n".join(list_tables(tables)))
            return 0
        args.build = args.build.resolve()
        return 0 if do_all(tables, args, progress) else 1
    except (UnknownTable, Refusal) as error:
        print(f"papers: {error}", file=sys.stderr)
        return UNUSABLE
    except BenchError as error:
        print(f"papers: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        progress.clear()
        print(f"papers: interrupted; what was measured is in {args.out}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
