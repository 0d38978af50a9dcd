# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the processes that a table's cells are printed by, interleaved: a round runs each once, and the next round begins with
another one, so that a disturbance of the machine hits all of them and one round."""

import json
import os
import statistics
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, NamedTuple, Optional

import lanes as lanes_module
from lanes import BenchError, Lane, Programs
from rows import Source

from .model import Cell, Key, Machine, Table

Printed = dict[str, tuple[float, str]]  # name -> value, unit
Process = tuple[str, str, tuple, tuple]  # lane, program, arguments, settings


class Setting(NamedTuple):
    programs: Programs
    bosk: Path  # folder of the build: lib, bin
    environment: dict[str, str]
    timeout: float


@dataclass
class Figures:
    """Of one cell: a value for each round, or why there is none."""

    values: list[float] = field(default_factory=list)
    failure: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.values)


def process_of(cell: Cell) -> Optional[Process]:
    if cell.source is None:
        return None
    return cell.lane, cell.source.program, cell.source.args, cell.source.env


def processes_of(cells: list[Cell]) -> list[Process]:
    return list(dict.fromkeys(process for process in map(process_of, cells) if process))


def needed_programs(cells: list[Cell]) -> list[str]:
    """That have to be compiled."""
    return list(dict.fromkeys(process[1] for process in processes_of(cells) if process[1] in lanes_module.PROGRAMS))


def measured(figure: dict) -> float:
    if figure["source"] not in ("measured", "alike"):
        raise BenchError("bosk topo --measure could not measure latencies on this machine")
    return figure["value"]


def latencies(report: str) -> Printed:
    """By distance from the first node, out of `bosk topo --costs --json`."""
    access = [one for one in json.loads(report)["costs"]["access"] if one["from"] == 0 and one["load"] == "alone"]
    found: Printed = {}
    for way in ("read", "write"):
        here = {one["to"]: measured(one["latency_ns"]) for one in access if one["way"] == way}
        found[f"{way} local"] = here.pop(0), "ns"
        if here:
            found[f"{way} nearest node"] = min(here.values()), "ns"
            found[f"{way} farthest node"] = max(here.values()), "ns"
    return found


def run_topo(setting: Setting, args: tuple) -> Printed:
    with tempfile.TemporaryDirectory() as cache:  # the user's own figures may be better ones
        done = subprocess.run([setting.bosk / "bin" / "bosk", *args], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=setting.timeout * 10,
                              env={**os.environ, "XDG_CACHE_HOME": cache})
    if done.returncode != 0:
        raise BenchError(f"bosk topo ended with {done.returncode}: {done.stderr.strip()}")
    return latencies(done.stdout)


def lane_of(setting: Setting, name: str) -> Lane:
    if name == "bosk":
        return Lane(name, "openmp", "gcc", str(setting.bosk / "lib"))
    return Lane(name, "openmp" if name == "libgomp" else name)


def run_process(setting: Setting, process: Process) -> Printed:
    name, program, args, env = process
    if name == "topo":
        return run_topo(setting, args)
    source = Source(program, args, env)
    return lanes_module.run_source(setting.programs, lane_of(setting, name), source, setting.environment, setting.timeout)[0]


def value_of(cell: Cell, printed: Printed) -> Optional[float]:
    if cell.source.output not in printed:
        if cell.optional:
            return None
        raise BenchError(f"{cell.source.program} did not print '{cell.source.output}'")
    value, unit = printed[cell.source.output]
    if unit != cell.unit:
        raise BenchError(f"{cell.source.program} printed {cell.source.output} in {unit}, expected {cell.unit}")
    return value


class Measurement:
    """Of one table. `run` is given a process and returns what it prints; `tell` is called before each."""

    def __init__(self, cells: list[Cell], run: Callable[[Process], Printed], tell: Callable[[str], None]):
        self.cells, self.run, self.tell = cells, run, tell
        self.figures: dict[Key, Figures] = {cell.key: Figures() for cell in cells}
        self.failed: dict[Process, str] = {}

    def round(self, number: int, rounds: int) -> None:
        every = processes_of(self.cells)
        # What always measures by several samples, and takes long, does so once.
        every = [process for process in every if number == 0 or process[0] != "topo"]
        turn = number % max(1, len(every))
        printed: dict[Process, Printed] = {}
        for done, process in enumerate(every[turn:] + every[:turn]):
            if process in self.failed:
                continue
            self.tell(f"round {number + 1} of {rounds}, {done + 1} of {len(every)}: {' '.join((process[1], *process[2]))}")
            try:
                printed[process] = self.run(process)
            except (BenchError, subprocess.TimeoutExpired) as error:
                self.failed[process] = str(error)
        self.take(printed)

    def take(self, printed: dict[Process, Printed]) -> None:
        this_round: dict[Key, float] = {}
        for cell in self.cells:
            figures, process = self.figures[cell.key], process_of(cell)
            if process in self.failed:
                figures.failure = self.failed[process]
            elif process in printed:
                try:
                    value = value_of(cell, printed[process])
                except BenchError as error:
                    figures.failure = str(error)
                    continue
                if value is not None:
                    this_round[cell.key] = value
        for cell in self.cells:
            if cell.derived and all(key in this_round for key in cell.derived.of):
                this_round[cell.key] = cell.derived.function(*[this_round[key] for key in cell.derived.of])
        for key, value in this_round.items():
            self.figures[key].values.append(value)

    def failures(self) -> list[str]:
        return list(dict.fromkeys(figures.failure for figures in self.figures.values() if figures.failure))


def measure(table: Table, machine: Machine, setting: Setting, quick: bool, rounds: int,
            tell: Callable[[str], None]) -> Measurement:
    cells = table.cells(machine, quick)
    setting.programs.build(tell, ("gcc",), needed_programs(cells))
    measurement = Measurement(cells, lambda process: run_process(setting, process), tell)
    for number in range(rounds):
        measurement.round(number, rounds)
    return measurement
