# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of the papers on bubbles: Thibault 2005, Thibault et al. 2007."""

from rows import Source

from .model import Cell, Counted, Derived, Figure, Machine, Panel, Table

BOUND = (("OMP_PROC_BIND", "close"), ("OMP_PLACES", "cores"))
NULL = (("BOSK_POLICY", "null"),)
# What nested teams have by default on machines where it matters; asked for, so that it acts on all.
SPREAD = (("BOSK_POLICY", "spread:100"),)


# --- 2005 table 1 ---------------------------------------------------------------------------------


def switch_cells(_machine: Machine, _quick: bool) -> list[Cell]:
    cells = []
    for row, lane, program in (("bosk", "internal", "bosk-bench-switch"), ("kernel", "kernel", "kernel_switch")):
        cells += [Cell(row, part, "cycles", Source(program, (), (), f"{part}-cycles"), lane, optional=True)
                  for part in ("yield", "switch")]
        both = ((row, "yield"), (row, "switch"))
        cells.append(Cell(row, "yield, share", "%",
                          derived=Derived(both, lambda search, switch: 100 * search / (search + switch)), optional=True))
    cells += [Cell("bosk", column, "ns", Source("bosk-bench-switch", (), (), output), "internal")
              for column, output in (("create and join a thread", "thread"), ("a bubble with one thread", "bubble"))]
    cells.append(Cell("kernel", "create and join a thread", "ns", Source("kernel_switch", (), (), "create-join"), "kernel"))
    return cells


# --- 2005 table 2 ---------------------------------------------------------------------------------


def stencil_cells(machine: Machine, quick: bool) -> list[Cell]:
    rows = (("STENCIL_ROWS", str((128 if quick else 512) * max(2, machine.cpus))),)
    one, versions = ("1", "1"), (("simple", ("1", str(machine.cpus)), ()), ("bound", ("1", str(machine.cpus)), BOUND),
                                 ("bubbles", (str(machine.teams), str(machine.members)), ()))
    cells = []
    for work in ("conduction", "advection"):
        name = f"{work}-sequential"
        cells.append(Cell(work, "sequential", "ms", Source("stencil", (name, *one), rows, name)))
        for lane, prefix in (("bosk", ""), ("libgomp", "libgomp, ")):
            for version, shape, env in versions:
                name, column = f"{work}-{version}", prefix + version
                cells.append(Cell(work, column, "ms", Source("stencil", (name, *shape), rows + env, name), lane))
                cells.append(Cell(work, f"{column}, speedup", "x",
                                  derived=Derived(((work, "sequential"), (work, column)), lambda one, many: one / many)))
                cells.append(Cell(work, f"{column}, of the CPUs", "%",
                                  derived=Derived(((work, f"{column}, speedup"),), lambda speedup: 100 * speedup / machine.cpus)))
    return cells


def stencil_counted() -> tuple[Counted, ...]:
    return tuple(
        Counted(f"{work}, {title}", before, "stencil", f"{work}-{version} {shape}", "mesh ")
        for work in ("conduction", "advection")
        for title, before, version, shape in (("simple, libgomp", "", "simple", "1 16"), ("simple", "bosk run", "simple", "1 16"),
                                              ("bound", "bosk run --bind=close", "bound", "1 16"),
                                              ("bubbles", "bosk run", "bubbles", "4 4"),
                                              ("bubbles, bound", "bosk run --bind=spread,close", "bubbles", "4 4")))


# --- 2005 figure 5 --------------------------------------------------------------------------------


def calls(number: int) -> int:
    """So many threads: one for each call of fib(number)."""
    return 1 if number < 2 else 1 + calls(number - 1) + calls(number - 2)


def fibonacci_cells(_machine: Machine, quick: bool) -> list[Cell]:
    # Some 20 us a call, as a thread of the paper's has some work; and none, where a bubble's own price shows.
    cells = []
    for words, work in (("work of 20 us", "50000"), ("no work", "0")):
        for number in (3, 5, 8, 11) if quick else (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12):
            column = str(calls(number))
            for version in ("list", "bubbles"):
                source = Source("fibonacci", (version, str(number), work), (), version)
                cells.append(Cell(f"{version}, {words}", column, "us", source))
            if work != "0":
                cells.append(Cell("one thread, work of 20 us", column, "us",
                                  Source("fibonacci", ("serial", str(number), work), (), "serial")))
            keys = ((f"list, {words}", column), (f"bubbles, {words}", column))
            cells.append(Cell(f"gain, {words}", column, "%",
                              derived=Derived(keys, lambda without, with_them: 100 * (without / with_them - 1))))
    return cells


def fibonacci_panels(_cells: list[Cell]) -> list[Panel]:
    return [Panel("gain by bubbles", tuple((words, f"gain, {words}") for words in ("work of 20 us", "no work")))]


# --- 2007 figures 4 and 5 -------------------------------------------------------------------------

# (row, lane, case of zones, settings): the paper's NPTL, Marcel, Marcel with bubbles.
VERSIONS = (("libgomp", "libgomp", "nested", ()), ("bosk, policy null", "bosk", "nested", NULL),
            ("bosk, bubbles", "bosk", "told", SPREAD))
ZONES = 16
MOST_INNER = 8
SEQUENTIAL = ("sequential", "1")


def powers(most: int) -> list[int]:
    return [1 << i for i in range(most.bit_length()) if 1 << i <= most]


def sequential_zones() -> Cell:
    return Cell(*SEQUENTIAL, "ms", Source("zones", ("sequential",), (), "sequential"))


def speedup_cells(row: str, column: str, source: Source, lane: str) -> list[Cell]:
    """Times are of one step; what is shown beside them is how much faster than the sequential program they are."""
    timed = Cell(f"{row}, time", column, "ms", source, lane, aside=True)
    return [timed, Cell(row, column, "x", derived=Derived((SEQUENTIAL, timed.key), lambda one, many: one / many))]


def best_cells(cells: list[Cell], row: str, rows: list[str], column: str, cpus: int) -> list[Cell]:
    """Of the speedups in these rows, and what part of the machine's CPUs it is."""
    speedups = tuple(cell.key for cell in cells if cell.row in rows and cell.unit == "x")
    return [Cell(row, f"{column} speedup", "x", derived=Derived(speedups, lambda *every: max(every))),
            Cell(row, f"{column}, of the CPUs", "%",
                 derived=Derived(((row, f"{column} speedup"),), lambda speedup: 100 * speedup / cpus))]


def one_level_cells(machine: Machine, quick: bool) -> list[Cell]:
    cells = [sequential_zones()]
    for row, lane, _, env in VERSIONS[:2] if quick else VERSIONS:
        for threads in powers(min(ZONES, 2 * machine.cpus)):
            for case in ("outer", "inner"):
                source = Source("zones", (case, str(threads)), env, case)
                cells += speedup_cells(f"{row}, {case}", str(threads), source, lane)
        for case in ("outer", "inner"):
            cells += best_cells(cells, row, [f"{row}, {case}"], f"best {case}", machine.cpus)
    return cells


def one_level_panels(cells: list[Cell]) -> list[Panel]:
    rows = [name for name, _, _, _ in VERSIONS if any(cell.row == f"{name}, outer" for cell in cells)]
    return [Panel(f"{case} parallelism", tuple((row, f"{row}, {case}") for row in rows)) for case in ("outer", "inner")]


def grid_cells(machine: Machine, _quick: bool) -> list[Cell]:
    cells = [sequential_zones()]
    most = 2 * machine.cpus
    for row, lane, case, env in VERSIONS:
        for outer in powers(min(ZONES, most)):
            for inner in powers(min(MOST_INNER, most)):
                source = Source("zones", (case, str(outer), str(inner)), env, case)
                cells += speedup_cells(f"{row}, {inner} inner", str(outer), source, lane)
        cells += best_cells(cells, row, [f"{row}, {inner} inner" for inner in powers(MOST_INNER)], "best", machine.cpus)
    return cells


def grid_panels(cells: list[Cell]) -> list[Panel]:
    inner = [i for i in powers(MOST_INNER) if any(cell.row == f"libgomp, {i} inner" for cell in cells)]
    return [Panel(row, tuple((f"{i} inner", f"{row}, {i} inner") for i in inner)) for row, _, _, _ in VERSIONS]


def one_level_counted() -> tuple[Counted, ...]:
    return tuple(Counted(f"{words}, {title}", before, "zones", args, "zone ")
                 for words, args in (("outer, 16 x 1", "outer 16"), ("inner, 1 x 16", "inner 16"))
                 for title, before in (("libgomp", ""), ("policy null", "bosk run --policy null"), ("bound", "bosk run --bind")))


def grid_counted() -> tuple[Counted, ...]:
    return (Counted("16 x 4, libgomp", "", "zones", "nested 16 4", "zone "),
            Counted("16 x 4, policy null", "bosk run --policy null", "zones", "nested 16 4", "zone "),
            Counted("16 x 4, bubbles, loads told", "bosk run --policy spread", "zones", "told 16 4", "zone "),
            Counted("16 x 4, bound", "bosk run --bind=spread,close", "zones", "told 16 4", "zone "))


ONE_NODE = "one NUMA node: all memory is near, so what threads gain by being near theirs is not in these figures"

TABLES = (
    Table("2005-table-1", "what a yield takes: search of the lists, and the switch", "bosk-bench-switch (built with bosk)", switch_cells,
          about="by the time-stamp counter; yield: the search of four lists, switch: synchronisation and the switch itself;"
                " kernel: sched_yield and what a switch adds to it"),
    Table("2005-table-2", "heat conduction and advection: sequential, simple, bound, bubbles", "2 CPUs; several NUMA nodes for what it is about",
          stencil_cells, one_node=ONE_NODE, counted=stencil_counted(),
          about="ms of 20 steps on a mesh of our own size; simple: one flat team, bound: that with OMP_PROC_BIND, bubbles: a team"
                " for each node (two where there is one), which opens a team for its CPUs"),
    Table("2005-figure-5", "fibonacci by recursive threads: what bubbles gain", "2 CPUs; several NUMA nodes for what it is about",
          fibonacci_cells, one_node=ONE_NODE,
          about="us a thread; columns are threads. gain: how much more is done in a time with bubbles (100 x (without / with - 1));"
                " one thread: the same calls without any thread",
          figure=Figure("threads", "gain, %", fibonacci_panels),
          counted=(Counted("threads that begin far from their makers", "bosk run --policy spread", "fibonacci", "distance 13 60000 100",
                           ""),)),
    Table("2007-figure-4", "irregular zones: outer parallelism, inner parallelism", "2 CPUs", one_level_cells, one_node=ONE_NODE,
          counted=one_level_counted(),
          about="16 zones, the largest 25 times the smallest, instead of BT-MZ class A; columns are threads; x: speedup over one thread;"
                " libgomp stands for NPTL, policy null for Marcel",
          figure=Figure("threads", "speedup", one_level_panels)),
    Table("2007-figure-5", "irregular zones: outer x inner threads", "2 CPUs", grid_cells, one_node=ONE_NODE, counted=grid_counted(),
          about="as figure 4; columns are outer threads; bubbles: bosk's policy spread, and loads told",
          figure=Figure("outer threads", "speedup", grid_panels)),
)
