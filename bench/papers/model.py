# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a table is made of: cells, each of which a process prints or others give; how it is drawn; what the lab counts."""

from dataclasses import dataclass, field
from typing import Callable, NamedTuple, Optional

from rows import Source

Key = tuple[str, str]  # row, column


class Derived(NamedTuple):
    """From other cells of the same round."""

    of: tuple[Key, ...]
    function: Callable[..., float]


@dataclass(frozen=True)
class Cell:
    row: str
    column: str
    unit: str
    source: Optional[Source] = None
    lane: str = "bosk"  # bosk, libgomp, internal, kernel, topo
    derived: Optional[Derived] = None
    # What this machine, kernel or processor may lack: without it the line is left out.
    optional: bool = False
    # What others are made of, and nobody wants to read: in the CSV only.
    aside: bool = False

    @property
    def key(self) -> Key:
        return self.row, self.column


class Panel(NamedTuple):
    """Part of a figure: `series` of rows, over the columns that are numbers."""

    title: str
    series: tuple[tuple[str, str], ...]  # name in the legend, row
    unit: str = ""  # only cells of this unit; "": all


@dataclass(frozen=True)
class Figure:
    x: str
    y: str
    panels: Callable[[list[Cell]], list[Panel]]
    log_x: bool = True
    log_y: bool = False


class Counted(NamedTuple):
    """A run in the lab: how much of what it does with the objects whose names begin so is local."""

    title: str
    before: str  # what stands before the program: settings, `bosk run`
    program: str
    args: str
    objects: str


@dataclass(frozen=True)
class Machine:
    """As far as this process may use it."""

    cpus: int
    nodes: tuple[int, ...]  # CPUs of each
    memory_mib: int
    name: str
    kernel: str
    emulated: bool = False

    @property
    def per_node(self) -> int:
        return min(self.nodes)

    @property
    def teams(self) -> int:
        """A team for each node; two where there is one, so that teams are nested."""
        return len(self.nodes) if len(self.nodes) > 1 else min(2, self.cpus)

    @property
    def members(self) -> int:
        """Of each of them."""
        return self.per_node if len(self.nodes) > 1 else max(1, self.cpus // self.teams)


@dataclass(frozen=True)
class Table:
    name: str
    title: str
    needs: str
    cells: Callable[[Machine, bool], list[Cell]]  # with --quick or without
    nodes: int = 1  # with fewer nothing is measured
    one_node: str = ""  # what a machine of one node does not show
    about: str = ""  # what ours is
    figure: Optional[Figure] = None
    counted: tuple[Counted, ...] = field(default=())
    counted_env: tuple[tuple[str, str], ...] = field(default=())

    @property
    def paper(self) -> str:
        return self.name.partition("-")[0]
