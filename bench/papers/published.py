# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the papers have published, as data. Nothing here is ever shown as a measurement of ours.

Values stand under the row and column of our table that they are to be compared with. Where a figure's values can only be
read off a plot, there are only those that the paper's text states, in words.
"""

from typing import NamedTuple


class Value(NamedTuple):
    value: float
    unit: str
    of: str = ""  # of what, where it is not named as ours
    compares: bool = True  # False: of another amount of work, so that a quotient would say nothing


class Paper(NamedTuple):
    who: str
    machine: str  # that its values are of


PAPERS: dict[str, Paper] = {
    "2005": Paper("Thibault 2005", "a 2.66 GHz Pentium IV Xeon (table 1), 4 nodes of 4 Itanium II (table 2)"),
    "2007": Paper("Thibault, Broquedis, Goglin, Namyst, Wacrenier 2007", "8 nodes of 2 cores, 1.8 GHz Opteron"),
    "2009": Paper("Broquedis, Furmento, Goglin, Wacrenier, Namyst 2009", "4 nodes of 4 cores, 1.9 GHz Opteron 8347HE"),
    "goglin": Paper("Goglin, Furmento 2009", "4 nodes of 4 cores, 1.9 GHz Opteron 2347HE, Linux 2.6.27"),
}

Key = tuple[str, str]  # row, column


def _worst_best(of: str, kernels: dict[str, tuple[float, float]]) -> dict[Key, Value]:
    found = {}
    for kernel, (worst, best) in kernels.items():
        found[of, f"{kernel}, worst"] = Value(worst, "MB/s")
        found[of, f"{kernel}, best"] = Value(best, "MB/s")
    return found


_MARCEL = "Marcel bubbles"
_NPTL = "NPTL, Linux 2.6"

VALUES: dict[str, dict[Key, Value]] = {
    "2005-table-1": {
        ("bosk", "yield"): Value(665, "cycles", _MARCEL),
        ("bosk", "switch"): Value(395, "cycles", _MARCEL),
        ("bosk", "yield, share"): Value(63, "%", _MARCEL),
        ("kernel", "yield"): Value(1790, "cycles", _NPTL),
        ("kernel", "switch"): Value(3930, "cycles", _NPTL),
        ("kernel", "yield, share"): Value(31, "%", _NPTL),
        ("Marcel without bubbles", "yield"): Value(495, "cycles"),
        ("Marcel without bubbles", "switch"): Value(223, "cycles"),
        ("Marcel without bubbles", "yield, share"): Value(69, "%"),
        ("bosk", "create and join a thread"): Value(3300, "ns", "Marcel, section 5.1"),
        ("bosk", "a bubble with one thread"): Value(3700, "ns", "Marcel, section 5.1"),
    },
    "2005-table-2": {
        ("conduction", "sequential"): Value(250200, "ms", compares=False),
        ("conduction", "simple"): Value(23650, "ms", compares=False),
        ("conduction", "bound"): Value(15820, "ms", compares=False),
        ("conduction", "bubbles"): Value(15840, "ms", compares=False),
        ("conduction", "simple, speedup"): Value(10.58, "x", "16 CPUs", compares=False),
        ("conduction", "simple, of the CPUs"): Value(100 * 10.58 / 16, "%", "10.58 / 16"),
        ("conduction", "bound, speedup"): Value(15.82, "x", "16 CPUs", compares=False),
        ("conduction", "bound, of the CPUs"): Value(100 * 15.82 / 16, "%", "15.82 / 16"),
        ("conduction", "bubbles, speedup"): Value(15.80, "x", "16 CPUs", compares=False),
        ("conduction", "bubbles, of the CPUs"): Value(100 * 15.80 / 16, "%", "15.80 / 16"),
        ("advection", "sequential"): Value(16130, "ms", compares=False),
        ("advection", "simple"): Value(1770, "ms", compares=False),
        ("advection", "bound"): Value(1300, "ms", compares=False),
        ("advection", "bubbles"): Value(1300, "ms", compares=False),
        ("advection", "simple, speedup"): Value(9.11, "x", "16 CPUs", compares=False),
        ("advection", "simple, of the CPUs"): Value(100 * 9.11 / 16, "%", "9.11 / 16"),
        ("advection", "bound, speedup"): Value(12.40, "x", "16 CPUs", compares=False),
        ("advection", "bound, of the CPUs"): Value(100 * 12.40 / 16, "%", "12.40 / 16"),
        ("advection", "bubbles, speedup"): Value(12.40, "x", "16 CPUs", compares=False),
        ("advection", "bubbles, of the CPUs"): Value(100 * 12.40 / 16, "%", "12.40 / 16"),
    },
    "2007-figure-4": {
        ("libgomp", "best inner speedup"): Value(7, "x", "almost 7 on 16 cores", compares=False),
        ("libgomp", "best inner, of the CPUs"): Value(100 * 7 / 16, "%", "almost 7 / 16"),
    },
    "2007-figure-5": {
        ("libgomp", "best speedup"): Value(6.28, "x", "NPTL, 16 cores", compares=False),
        ("libgomp", "best, of the CPUs"): Value(100 * 6.28 / 16, "%", "NPTL, 6.28 / 16"),
        ("bosk, policy null", "best speedup"): Value(8.16, "x", "Marcel, 16 cores", compares=False),
        ("bosk, policy null", "best, of the CPUs"): Value(100 * 8.16 / 16, "%", "Marcel, 8.16 / 16"),
        ("bosk, bubbles", "best speedup"): Value(10.2, "x", "bubbles, loads told, 16 x 4, 16 cores", compares=False),
        ("bosk, bubbles", "best, of the CPUs"): Value(100 * 10.2 / 16, "%", "bubbles, 10.2 / 16"),
    },
    "2009-table-1": {
        ("threads of one node", "local"): Value(5151, "MB/s", "4 threads"),
        ("threads of one node", "local and neighbours"): Value(5740, "MB/s", "4 threads"),
        ("threads of all nodes", "local"): Value(4 * 3635, "MB/s", "16 threads: 4 x 3635"),
        ("threads of all nodes", "local and neighbours"): Value(4 * 2257, "MB/s", "16 threads: 4 x 2257"),
    },
    "2009-table-3": {
        ("read", "local"): Value(83, "ns"),
        ("read", "nearest node"): Value(98, "ns", "x 1.18"),
        ("read", "farthest node"): Value(117, "ns", "x 1.41"),
        ("write", "local"): Value(142, "ns"),
        ("write", "nearest node"): Value(177, "ns", "x 1.25"),
        ("write", "farthest node"): Value(208, "ns", "x 1.46"),
    },
    "2009-table-4": {
        **_worst_best("libgomp", {"copy": (6747, 8577), "scale": (6662, 8566), "add": (7132, 8821),
                                  "triad": (7183, 8832)}),
        **_worst_best("bosk", {"copy": (7851, 7859), "scale": (7821, 7828), "add": (8335, 8340),
                               "triad": (8357, 8361)}),
    },
    "2009-table-5": {
        **_worst_best("libgomp", {"copy": (6900, 8032), "scale": (6961, 7930), "add": (7231, 8181),
                                  "triad": (7275, 8123)}),
        **_worst_best("bosk", {"copy": (8302, 8631), "scale": (8201, 8585), "add": (8344, 8881),
                               "triad": (8504, 9217)}),
    },
    "2009-table-6": {
        ("libgomp", "phase 1"): Value(8144, "MB/s"),
        ("libgomp", "phase 2"): Value(3560, "MB/s"),
        ("bosk", "phase 1"): Value(9108, "MB/s", "ForestGOMP"),
        ("bosk", "phase 2"): Value(6008, "MB/s", "ForestGOMP"),
    },
    "goglin-figure-3": {
        ("move_pages", "8192"): Value(600, "MB/s", "what it comes to for many pages"),
        ("migrate_pages", "8192"): Value(800, "MB/s", "what it comes to for many pages"),
        ("next-touch", "8192"): Value(800, "MB/s", "what it comes to, in the kernel"),
        ("copy-on-write", "8192"): Value(800, "MB/s", "more than that, section 3.1"),
        ("next-touch, mark", "1"): Value(640, "ns", "600 ns and 40 ns a page, in the kernel"),
        ("next-touch, mark", "8192"): Value(600 + 40 * 8192, "ns", "600 ns and 40 ns a page, in the kernel"),
    },
}

# What only the text says: of plots, and of what else belongs to a table.
TEXT: dict[str, tuple[str, ...]] = {
    "2005-figure-5": (
        "a plot; the text: with few threads bubbles cost time; on 2 hyper-threaded Pentium IV Xeon the gain is 30 to 40 %"
        " from 16 threads on; on 4 x 4 Itanium II 40 % with 32 threads and up to 80 % with 512",),
    "2007-figure-4": (
        "a plot; the text: outer parallelism is limited by the largest zones; inner parallelism reaches almost 7 on 16"
        " cores",),
    "2007-figure-5": (
        "a plot; the text has the best speedups, on 16 cores; that of 10.2 has 16 outer x 4 inner threads",),
    "2009-table-4": ("ForestGOMP in the paper is compared with bosk here; vectors of 20 million doubles, 16 threads",),
    "2009-table-5": ("ForestGOMP in the paper is compared with bosk here; 4 teams of 4 threads",),
    "2009-figure-2": (
        "a plot; the text: to move threads is best, whatever the number of passes; to move memory pays from some number of"
        " passes on",),
    "2009-figure-3": (
        "a plot; the text: of one vector only, it is better to move the one that is written; mixed (threads go, and their"
        " own vector comes along) costs less than to move both, and is the best of all with many passes",),
    "goglin-figure-3": (
        "a plot; the text: move_pages takes 72 us and 2.5 us a page beside the copy, a page's next-touch 5.2 us in all (1 us"
        " without the copy), the kernel copies 1 GB/s; memcpy is faster than all of them, for few pages and for many",
        "2009, section 3.2: migration by ForestGOMP's library takes 120 + 11 x pages us, some 380 MB/s",),
    "goglin-lu": ("the text: a speedup of 100 % for an LU factorisation with OpenMP threads (section 6)",),
}
