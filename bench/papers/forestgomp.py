# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of Broquedis et al. 2009: bandwidth and latency by place, STREAM, Nested-STREAM, Twisted-STREAM."""

import twisted
from rows import Source

from .model import Cell, Counted, Derived, Figure, Machine, Panel, Table

SPREAD_CLOSE = (("OMP_PROC_BIND", "spread,close"), ("OMP_PLACES", "cores"))
KERNELS = ("copy", "scale", "add", "triad")


def vector_kib(machine: Machine, quick: bool) -> int:
    """20 million doubles, as in the paper, where three of them and their copies have room."""
    return min(65536 if quick else 156250, machine.memory_mib * 1024 // 16)


# --- table 1, table 3 ---------------------------------------------------------------------------


def bandwidth_cells(machine: Machine, quick: bool) -> list[Cell]:
    env = (("BANDWIDTH_KIB", str(min(65536, machine.memory_mib * 1024 // 8 // machine.cpus))),)
    places = (("local", "local"),) + ((("local and neighbours", "neighbours"),) if len(machine.nodes) > 1 else ())
    rows = [("threads of one node", "one", str(machine.per_node)), ("threads of all nodes", "all", str(machine.per_node))]
    cells = []
    for row, at_work, threads in rows if len(machine.nodes) > 1 else rows[:1]:
        cells += [Cell(row, column, "MB/s", Source("bandwidth", (place, at_work, threads), env, "bandwidth"), "libgomp")
                  for column, place in places]
    cells += [Cell("one thread", column, "MB/s", Source("bandwidth", (place, "one", "1"), env, "bandwidth"), "libgomp")
              for column, place in places]
    return cells


def latency_cells(machine: Machine, quick: bool) -> list[Cell]:
    args = ("topo", "--measure", "--json") + (("--quick",) if quick else ())
    places = ["local"] + (["nearest node", "farthest node"] if len(machine.nodes) > 1 else [])
    cells = [Cell(way, place, "ns", Source("bosk", args, (), f"{way} {place}"), "topo")
             for way in ("read", "write") for place in places]
    for way in ("read", "write"):
        cells += [Cell(way, f"{place}, factor", "x",
                       derived=Derived(((way, place), (way, "local")), lambda far, near: far / near)) for place in places[1:]]
    return cells


# --- tables 4, 5, 6 -----------------------------------------------------------------------------


def stream_cells(machine: Machine, quick: bool) -> list[Cell]:
    env = (("STREAM_KIB", str(vector_kib(machine, quick))),)
    return [Cell(row, f"{kernel}, {which}", "MB/s", Source("stream", (kernel, threads), env, which), lane)
            for row, lane, threads in (("libgomp", "libgomp", str(machine.cpus)), ("bosk", "bosk", str(machine.cpus)),
                                       ("one thread", "libgomp", "1"))
            for kernel in KERNELS for which in ("worst", "best")]


def nested_cells(machine: Machine, quick: bool) -> list[Cell]:
    env = (("STREAM_KIB", str(vector_kib(machine, quick))),)
    shape = (str(machine.teams), str(machine.members))
    return [Cell(lane, f"{kernel}, {which}", "MB/s", Source("stream", ("nested", kernel, *shape), env, which), lane)
            for lane in ("libgomp", "bosk") for kernel in KERNELS for which in ("worst", "best")]


def twisted_source(machine: Machine, quick: bool, data: str, variant: str, passes: int, output: str) -> Source:
    args = ("twisted", data, variant, str(passes), str(machine.teams), str(machine.members))
    env = (("STREAM_KIB", str(vector_kib(machine, quick))),)
    if variant in ("threads", "mixed"):
        env += SPREAD_CLOSE + (("BOSK_IDENTITY", "kthread"),)  # they bind the kernel thread that they are on
    elif variant == "policy":
        env += (("BOSK_POLICY", "memory"),)
    else:
        env += SPREAD_CLOSE
    return Source("stream", args, env, output)


def first_touch_cells(machine: Machine, quick: bool) -> list[Cell]:
    cells = []
    for lane in ("libgomp", "bosk"):
        for phase in ("1", "2"):
            source = twisted_source(machine, quick, "all", "nothing", 10, f"phase-{phase}")
            if lane == "libgomp":  # as it comes, as in the paper
                source = Source(source.program, source.args, source.env[:1], source.output)
            cells.append(Cell(lane, f"phase {phase}", "MB/s", source, lane))
    return cells


# --- figures 2 and 3 ------------------------------------------------------------------------------

# (row, variant of stream.c)
ALL_REMOTE = (("migrate nothing", "nothing"), ("migrate memory", "memory"), ("migrate threads", "threads"),
              ("bosk's next-touch", "next-touch"), ("left to bosk's policy", "policy"))
TWO_REMOTE = (("migrate nothing", "nothing"), ("migrate R and W", "both"), ("migrate R", "read"), ("migrate W", "written"),
              ("migrate threads, and their own vector", "mixed"), ("bosk's next-touch", "next-touch"), ("left to bosk's policy", "policy"))


def all_remote_cells(machine: Machine, quick: bool) -> list[Cell]:
    return [Cell(row, str(passes), "ms", twisted_source(machine, quick, "all", variant, passes, "twisted"))
            for passes in ((1, 8, 64) if quick else (1, 2, 4, 8, 16, 32, 64, 128)) for row, variant in ALL_REMOTE]


def two_remote_cells(machine: Machine, quick: bool) -> list[Cell]:
    cells = []
    for passes in (1, 8, 128) if quick else (1, 2, 4, 8, 128, 256, 512):
        for row, variant in TWO_REMOTE:
            timed = Cell(f"{row}, time", str(passes), "ms", twisted_source(machine, quick, "two", variant, passes, "twisted"),
                         aside=True)
            cells.append(timed)
            nothing = (f"{TWO_REMOTE[0][0]}, time", str(passes))
            cells.append(Cell(row, str(passes), "ratio", derived=Derived((timed.key, nothing), lambda one, base: one / base)))
    return cells


def all_remote_panels(_cells: list[Cell]) -> list[Panel]:
    return [Panel("all three vectors remote", tuple((row, row) for row, _ in ALL_REMOTE))]


def two_remote_panels(_cells: list[Cell]) -> list[Panel]:
    return [Panel("two of three vectors remote", tuple((row, row) for row, _ in TWO_REMOTE))]


# --- what the lab counts --------------------------------------------------------------------------


def stream_counted(nested: bool) -> tuple[Counted, ...]:
    args = "nested triad 4 4" if nested else "triad 16"
    before = (("libgomp", ""), ("bosk", "bosk run"), ("bosk, bound", "bosk run --bind=spread,close" if nested else "bosk run --bind"))
    return tuple(Counted(f"triad, {title}", how, "stream", args, "set ") for title, how in before)


def twisted_counted(data: str) -> tuple[Counted, ...]:
    """The runs of `./dev bench stream --lab` with one inner region, and vectors short enough for all of them to take a minute or two."""
    return tuple(Counted(run.title, run.prefix, run.program,
                         f"{'twisted ' if run.program == twisted.STREAM else ''}{run.data} {run.variant} 20 4 4", "set ")
                 for run in twisted.runs() if run.data == data and not run.many)


TWISTED = (("STREAM_KIB", "512"),)
SMALL = (("STREAM_KIB", "2048"),)
ONE_NODE = "one NUMA node: all memory is near, so what the table is about, where threads and data are, is not in these figures"
FAR = "one NUMA node: nothing can be remote here, so it is not measured; --lab counts what is local in a virtual NUMA machine instead"

TABLES = (
    Table("2009-table-1", "bandwidth of all threads, by where the memory is", "2 NUMA nodes (with one: the local column only)", bandwidth_cells,
          one_node="one NUMA node: there are no neighbours, and the node is all of the machine; emulated machines have no bandwidths, so"
                   " the lab cannot show it either",
          about="reads of 8 bytes, memory of each thread its own; neighbours: page by page on the own node and those next to it"),
    Table("2009-table-3", "latency by distance", "2 NUMA nodes (with one: the local column only)", latency_cells,
          one_node="one NUMA node: there is no other to be far from; emulated machines have no latencies, so the lab cannot show it"
                   " either",
          about="by `bosk topo --costs`, one thread, everything else idle; it measures once, best of several samples"),
    Table("2009-table-4", "STREAM", "several NUMA nodes for what it is about", stream_cells, one_node=ONE_NODE,
          about="MB/s of the worst and the best pass, one thread for each CPU, nobody bound by settings",
          counted=stream_counted(False), counted_env=SMALL),
    Table("2009-table-5", "Nested-STREAM", "several NUMA nodes for what it is about", nested_cells, one_node=ONE_NODE,
          about="as table 4, a team for each node (two where there is one), on vectors of its own",
          counted=stream_counted(True), counted_env=SMALL),
    Table("2009-table-6", "Twisted-STREAM by first touch: phase 1, phase 2", "2 NUMA nodes", first_touch_cells, nodes=2, one_node=FAR,
          about="triad, three passes of phase 1 and ten of phase 2; libgomp as it comes, bosk's teams on their nodes",
          counted=twisted_counted("all")[:2], counted_env=TWISTED),
    Table("2009-figure-2", "Twisted-STREAM, all vectors remote: nothing, memory, or threads move", "2 NUMA nodes", all_remote_cells,
          nodes=2, one_node=FAR, about="ms of phase 2, moving included; columns are passes of triad",
          figure=Figure("passes", "ms", all_remote_panels, log_y=True),
          counted=twisted_counted("all"), counted_env=TWISTED),
    Table("2009-figure-3", "Twisted-STREAM, two of three vectors remote: what moves", "2 NUMA nodes", two_remote_cells,
          nodes=2, one_node=FAR, about="time of phase 2, moving included, as a part of that with nothing moved; columns are passes",
          figure=Figure("passes", "of the time with nothing moved", two_remote_panels),
          counted=twisted_counted("two"), counted_env=TWISTED),
)
