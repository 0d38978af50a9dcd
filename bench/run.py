#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the benchmarks on bosk and on the other runtimes, interleaved, and prints one table per
group. See README.md in this folder. Ends with 0 unless something could not be run."""

import argparse
import datetime
import fnmatch
import json
import os
import platform
import sys
import time
from pathlib import Path

import lanes as lanes_module
import report
import rows as rows_module

REPO = Path(__file__).resolve().parent.parent
FULL_ENV = {"BENCH_SAMPLE_MS": "12", "BENCH_BUDGET_MS": "400", "BENCH_WARM_MS": "30"}
QUICK_ENV = {"BENCH_SAMPLE_MS": "4", "BENCH_BUDGET_MS": "120", "BENCH_WARM_MS": "25"}


def parse_arguments(argv: list) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME",
                        help="groups (%s) or rows, * and ? allowed; default: nested sync switch"
                        % ", ".join(rows_module.GROUPS))
    parser.add_argument("--quick", action="store_true", help="short samples and 2 runs")
    parser.add_argument("--runs", type=int, help="rounds over all runtimes (7; quick: 2)")
    parser.add_argument("--json", metavar="FILE", help="write all figures to FILE")
    parser.add_argument("--markdown", metavar="FILE", nargs="?", const="-",
                        help="write the tables as Markdown to FILE, or print them so")
    parser.add_argument("--bosk", metavar="LIBDIR", type=Path, default=REPO / "build" / "lib",
                        help="folder with bosk's libgomp.so.1 (build/lib)")
    parser.add_argument("--build", metavar="DIR", type=Path, default=REPO / "build" / "bench",
                        help="where the programs are compiled (build/bench)")
    parser.add_argument("--lanes", metavar="LIST", help="only these runtimes, comma-separated")
    parser.add_argument("--peer", metavar="NAME=LIBDIR[:clang|:gcc]", action="append", default=[],
                        help="one more runtime: folder with its libomp.so.5 (or libgomp.so.1)")
    parser.add_argument("--env", metavar="NAME=VALUE", action="append", default=[],
                        help="set in every measured process")
    parser.add_argument("--cpus", metavar="LIST", default="2",
                        help="how many CPUs to use (2, as the targets assume), or 'all'")
    parser.add_argument("--timeout", type=float, default=30, help="seconds for one process (30)")
    parser.add_argument("--from", dest="saved", metavar="FILE",
                        help="measure nothing, print the tables of a --json file")
    parser.add_argument("--list", action="store_true", help="print the rows and their targets")
    args = parser.parse_args(argv)
    args.runs = (2 if args.quick else 7) if args.runs is None else args.runs
    if args.runs < 1:
        parser.error("--runs: at least 1")
    if args.cpus != "all" and not (args.cpus.isdigit() and int(args.cpus) > 0):
        parser.error("--cpus: a positive number or 'all'")
    args.peers = []
    for peer in args.peer:
        name, _, place = peer.partition("=")
        libdir, _, compiler = place.partition(":")
        if not name or not libdir or compiler not in ("", "clang", "gcc"):
            parser.error(f"--peer {peer}: expected NAME=LIBDIR or NAME=LIBDIR:gcc")
        args.peers.append((name, str(Path(libdir).resolve()), compiler or "clang"))
    if any("=" not in setting for setting in args.env):
        parser.error("--env: expected NAME=VALUE")
    args.bosk = args.bosk.resolve()
    return args


def choose_rows(names: list) -> list:
    """Rows of the named groups, and rows whose name matches; with what derived ones are made of."""
    names = names or ["nested", "sync", "switch"]
    every = rows_module.all_rows()
    chosen = set()
    for name in names:
        hits = {row.name for row in every
                if row.group == name or fnmatch.fnmatchcase(row.name, name)}
        if not hits:
            raise lanes_module.BenchError(f"no group or row is called '{name}' (--list shows them)")
        chosen |= hits
    for row in every:
        if row.derived and row.name in chosen:
            chosen |= set(row.derived[0])
    return [row for row in every if row.name in chosen]


def choose_cpus(wanted: str) -> int:
    """Restricts this process, and so all it starts, to CPUs that are cores of their own where
    possible. Returns how many."""
    allowed = sorted(os.sched_getaffinity(0))
    if wanted == "all" or len(allowed) <= int(wanted):
        return len(allowed)
    first_of_core, others, seen = [], [], set()
    for cpu in allowed:
        try:
            path = f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
            core = Path(path).read_text(encoding="ascii").strip()
        except OSError:
            core = str(cpu)
        (others if core in seen else first_of_core).append(cpu)
        seen.add(core)
    cpus = (first_of_core + others)[:int(wanted)]
    os.sched_setaffinity(0, cpus)
    return len(cpus)


class Progress:
    """One line on stderr: rewritten on a terminal, a new one per round otherwise."""

    def __init__(self):
        self.rewrite = sys.stderr.isatty()

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def step(self, text: str) -> None:
        if self.rewrite:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self.rewrite:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


class Measurement:
    """All rounds: values per row and lane, failures, and what the programs said on stderr."""

    def __init__(self, args, programs, rows, lanes, progress):
        self.args, self.programs, self.rows, self.lanes = args, programs, rows, lanes
        self.progress = progress
        self.values = {row.name: {} for row in rows}  # row -> lane -> [value per round]
        self.failures = {}  # (row, lane) -> reason
        self.said = {}  # (lane, line) -> None, in order
        self.settings = dict(QUICK_ENV if args.quick else FULL_ENV)
        self.settings.update(setting.split("=", 1) for setting in args.env)
        self.finished_rounds = 0
        self.extra_units = {}  # rows that only bosk-bench-switch knows

    @staticmethod
    def column(lane) -> str:
        return "bosk" if lane.kind == "internal" else lane.name

    def run(self) -> None:
        for number in range(self.args.runs):
            if not self.progress.rewrite:
                self.progress.say(f"round {number + 1} of {self.args.runs}")
            self.run_round(number)
            self.finished_rounds += 1
        self.progress.clear()

    def run_round(self, number: int) -> None:
        cache, this_round = {}, {}
        # Each round starts with another runtime, so that none is always the first.
        turn = number % max(len(self.lanes), 1)
        order = self.lanes[turn:] + self.lanes[:turn]
        for row in self.rows:
            for lane in order:
                source = row.source_on(lane)
                column = self.column(lane)
                if source is None or (row.name, column) in self.failures:
                    continue
                self.progress.step(f"round {number + 1} of {self.args.runs}: {row.name} {column}")
                try:
                    value = self.measure(row, lane, source, cache)
                except lanes_module.BenchError as error:
                    self.failures[row.name, column] = str(error)
                    continue
                if value is not None:
                    self.values[row.name].setdefault(column, []).append(value)
                    this_round[row.name, column] = value
        self.derive(this_round)

    def measure(self, row, lane, source, cache):
        key = (lane.name, source.program, source.args, source.env)
        if key not in cache:
            try:
                values, messages = lanes_module.run_source(
                    self.programs, lane, source, self.settings, self.args.timeout)
            except lanes_module.BenchError as error:
                cache[key] = error
            else:
                cache[key] = values
                self.said.update({(lane.name, line): None for line in messages})
                if lane.kind == "internal":
                    self.take_unlisted(values)
        values = cache[key]
        if isinstance(values, lanes_module.BenchError):
            raise values
        if source.output not in values:
            # Some things cannot be known everywhere: cycles without a time-stamp counter, and a
            # switch of the kernel that did not happen. All else must be printed.
            if lane.kind == "kernel" or (lane.kind == "internal" and row.unit == "cycles"):
                return None
            raise lanes_module.BenchError(f"{source.program} did not print '{source.output}'")
        value, unit = values[source.output]
        # A row may say of what the program's figure is one: "ns/page"; a rate is a unit as it stands.
        if unit not in (row.unit, row.unit.split("/")[0]):
            raise lanes_module.BenchError(f"{source.program} printed {source.output} in {unit}, "
                                          f"expected {row.unit}")
        return value

    def take_unlisted(self, values: dict) -> None:
        """Figures that bosk-bench-switch prints and rows.py does not know become rows too."""
        known = {row.sources["internal"].output for row in rows_module.all_rows()
                 if "internal" in row.sources}
        for name, (value, unit) in values.items():
            if name not in known:
                self.extra_units[name] = unit
                self.values.setdefault(name, {}).setdefault("bosk", []).append(value)

    def derive(self, this_round: dict) -> None:
        for row in self.rows:
            if row.derived is None:
                continue
            names, function = row.derived
            inputs = [this_round.get((name, "bosk")) for name in names]
            if None not in inputs:
                self.values[row.name].setdefault("bosk", []).append(function(*inputs))

    def row_result(self, row, judged: bool) -> dict:
        lanes = {}
        for column, values in self.values[row.name].items():
            lanes[column] = report.summarise(values)
        for (name, column), reason in self.failures.items():
            if name == row.name:
                lanes[column] = {"failure": reason}
        medians = {name: lane.get("median") for name, lane in lanes.items()} if judged else {}
        return {
            "group": row.group,
            "name": row.name,
            "unit": row.unit,
            "higher_is_better": row.higher_is_better,
            "lanes": lanes,
            "targets": [report.judge(target, medians) for target in row.targets],
        }

    def results(self, judged: bool) -> list:
        results = [self.row_result(row, judged) for row in self.rows]
        for name, unit in self.extra_units.items():
            results.append(self.row_result(rows_module.Row("switch", name, unit), judged))
        return results


class CpuTimes:
    """Shares of the machine's CPU time since it was made: what others use spoils figures."""

    def __init__(self):
        self.before = self.read()

    @staticmethod
    def read() -> list:
        first = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
        return [int(word) for word in first.split()[1:9]]

    def percent(self, *fields: int) -> float:
        passed = [now - then for now, then in zip(self.read(), self.before)]
        return round(100 * sum(passed[f] for f in fields) / max(sum(passed), 1), 1)

    def busy(self) -> float:
        return round(100 - self.percent(3, 4), 1)  # all but idle and iowait

    def stolen(self) -> float:
        return self.percent(7)  # by other virtual machines


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def measure_all(args: argparse.Namespace, progress: Progress) -> dict:
    rows = choose_rows(args.names)
    cpus = choose_cpus(args.cpus)
    programs = lanes_module.Programs(args.build, args.bosk.parent / "bin")
    programs.build(progress.say)
    lanes, skipped = lanes_module.find_lanes(programs, args.bosk, args.peers)
    if args.lanes:
        wanted = set(args.lanes.split(","))
        unknown = wanted - {Measurement.column(lane) for lane in lanes}
        if unknown:
            raise lanes_module.BenchError(f"cannot measure {', '.join(sorted(unknown))}: "
                                          + ("; ".join(skipped) or "no such runtime"))
        lanes = [lane for lane in lanes if Measurement.column(lane) in wanted]
    for line in skipped:
        progress.say(line)
    before = CpuTimes()
    time.sleep(0.5)
    busy_before = before.busy()
    during = CpuTimes()
    measurement = Measurement(args, programs, rows, lanes, progress)
    notes = []
    try:
        measurement.run()
    except KeyboardInterrupt:
        progress.clear()
        notes.append(f"interrupted: only {measurement.finished_rounds} whole rounds")
    notes += [f"{lane} said: {line}" for lane, line in measurement.said]
    if cpus != 2:
        notes.append(f"targets are for 2 CPUs and not judged on {cpus}")
    if busy_before > 15:
        notes.append("other work was running: rely on ratios only")
    columns = []
    for lane in lanes:  # bosk's internals stand in bosk's column
        if Measurement.column(lane) not in [column["name"] for column in columns]:
            columns.append({"name": Measurement.column(lane), "library": lane.library})
    return {
        "date": datetime.date.today().isoformat(),
        "machine": {
            "cpu": cpu_name(),
            "cpus": cpus,
            "kernel": platform.release(),
            "busy_before": busy_before,
            "stolen": during.stolen(),
        },
        "lanes": columns,
        "skipped": skipped,
        "runs": args.runs,
        "quick": args.quick,
        "spread": "middle half" if args.runs >= 4 else "least–most",
        "rows": measurement.results(cpus == 2),
        "failures": [f"{row} on {lane}: {why}"
                     for (row, lane), why in measurement.failures.items()],
        "notes": notes,
    }


def main(argv: list) -> int:
    args = parse_arguments(argv)
    progress = Progress()
    try:
        if args.list:
            for row in choose_rows(args.names or list(rows_module.GROUPS)):
                targets = "; ".join(target.text() for target in row.targets) or "-"
                print(f"{row.group:8} {row.name:28} {row.unit:9} {targets}")
            return 0
        if args.saved:
            result = json.loads(Path(args.saved).read_text(encoding="utf-8"))
        else:
            result = measure_all(args, progress)
    except lanes_module.BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    if args.json:
        Path(args.json).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if args.markdown == "-":
        print(report.markdown_report(result), end="")
    else:
        print(report.text_report(result), end="")
        if args.markdown:
            Path(args.markdown).write_text(report.markdown_report(result), encoding="utf-8")
    return 1 if result["failures"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
