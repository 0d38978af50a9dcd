# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of Goglin and Furmento 2009: ways of pages to another node, LU with next-touch."""

from rows import Source

from .model import Cell, Counted, Derived, Figure, Machine, Panel, Table

# (row, path of page_paths.c, lane, needs another node)
PATHS = (("memcpy", "memcpy", "libgomp", False), ("move_pages", "move-pages", "libgomp", True),
         ("migrate_pages", "migrate-pages", "libgomp", True), ("copy-on-write", "copy-on-write", "libgomp", False),
         ("next-touch", "next-touch", "bosk", True))
# With one node data stay where they are: a row of its own, which is compared with nothing.
STAYS = "next-touch, data stay"
MARK = "next-touch, mark"


def page_cells(machine: Machine, quick: bool) -> list[Cell]:
    sizes = (1, 8, 64, 512, 8192) if quick else tuple(1 << i for i in range(14))
    words = tuple(str(size) for size in sizes)
    cells = []
    for row, path, lane, far in PATHS:
        here = len(machine.nodes) < 2
        if far and here and path != "next-touch":
            continue
        row = STAYS if far and here else row
        cells += [Cell(row, size, "MB/s", Source("page_paths", (path, *words), (), f"pages-{size}"), lane) for size in words]
        if path == "next-touch":
            cells += [Cell(MARK, size, "ns", Source("page_paths", (path, *words), (), f"mark-{size}"), lane) for size in words]
    return cells


def page_panels(cells: list[Cell]) -> list[Panel]:
    rows = dict.fromkeys(cell.row for cell in cells if cell.unit == "MB/s")
    return [Panel("pages to another node", tuple((row, row) for row in rows))]


MARKS = "5"


def lu_cells(machine: Machine, quick: bool) -> list[Cell]:
    size = "512" if quick else "1024" if machine.cpus < 16 else "2048"
    threads = str(machine.cpus)
    runs = (("one thread", "libgomp", "1", ()), ("libgomp", "libgomp", threads, ()), ("bosk", "bosk", threads, ()),
            ("bosk, next-touch", "bosk", threads, (MARKS,)))
    cells = []
    for row, lane, team, marks in runs:
        cells.append(Cell(row, "time", "ms", Source("lu", (size, "32", team, *marks), (), "lu"), lane))
        cells.append(Cell(row, "speedup", "x", derived=Derived((("one thread", "time"), (row, "time")), lambda one, many: one / many)))
    with_and_without = (("bosk", "time"), ("bosk, next-touch", "time"))
    cells.append(Cell("bosk, next-touch", "gain over bosk", "%",
                      derived=Derived(with_and_without, lambda without, marked: 100 * (without / marked - 1))))
    return cells


LU = "256 16 16"

TABLES = (
    Table("goglin-figure-3", "pages to another node: memcpy, system calls, copy-on-write, next-touch", "2 NUMA nodes (with one: copies and marks only)",
          page_cells,
          one_node="one NUMA node: pages cannot go to another one, so there is no move_pages, migrate_pages or next-touch between"
                   " nodes; emulated machines have no times, so the lab cannot show it either",
          about="columns are pages of 4 KiB, from the first node to the second; next-touch: bosk's, in user space, marks and touches"
                " together; with one node: the same where data may stay",
          figure=Figure("pages", "MB/s", page_panels, log_y=True)),
    Table("goglin-lu", "LU factorisation with and without next-touch", "several NUMA nodes for what it is about", lu_cells,
          one_node="one NUMA node: nothing can be remote, so it shows what marks cost where there is nothing to gain",
          about=f"blocks of 32 x 32, dealt out anew at each step; next-touch: the matrix is marked {MARKS} times on the way",
          counted=(Counted("libgomp", "", "lu", LU, "matrix"), Counted("bosk", "bosk run", "lu", LU, "matrix"),
                   Counted("bosk, next-touch", "bosk run", "lu", f"{LU} {MARKS}", "matrix"))),
)
