# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rows of the benchmark tables: which program measures each, and what bosk should reach.

A row is measured on several lanes (a lane is one runtime: bosk, libgomp, libomp, tbb, kernel). The
targets are those of the issue that asked for the benchmark; they hold for two CPUs.
"""

import atexit
import tempfile
from dataclasses import dataclass, field
from typing import Callable, Optional

TEAM_SIZES = (2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class Source:
    """One short process: program, arguments, extra environment, and which of its lines counts."""

    program: str
    args: tuple = ()
    env: tuple = ()
    output: str = ""


@dataclass(frozen=True)
class Target:
    """kind: max (value at most limit), min (at least), times (peer/bosk at least limit),
    within (bosk at most limit × peer), plus (bosk at most peer + limit)."""

    kind: str
    limit: float
    peer: str = ""

    def text(self) -> str:
        limit = f"{self.limit:,g}"
        return {
            "max": f"≤ {limit}",
            "min": f"≥ {limit}",
            "times": f"{self.peer}/bosk ≥ {limit}",
            "within": f"≤ {limit} × {self.peer}",
            "plus": f"≤ {self.peer} + {limit}",
        }[self.kind]


@dataclass
class Row:
    group: str
    name: str
    unit: str
    sources: dict = field(default_factory=dict)  # name of a lane, or kind of lanes -> Source
    targets: list = field(default_factory=list)
    higher_is_better: bool = False
    # Bosk's column only, computed from bosk's figures in other rows: (names, function of them).
    derived: Optional[tuple[tuple, Callable]] = None

    def source_on(self, lane) -> Optional[Source]:
        return self.sources.get(lane.name) or self.sources.get(lane.kind)


def at_most(limit: float) -> Target:
    return Target("max", limit)


def at_least(limit: float) -> Target:
    return Target("min", limit)


def times(peer: str, limit: float) -> Target:
    return Target("times", limit, peer)


def within(peer: str, limit: float) -> Target:
    return Target("within", limit, peer)


def plus(peer: str, limit: float) -> Target:
    return Target("plus", limit, peer)


def openmp(program: str, *args, env: tuple = ()) -> dict:
    return {"openmp": Source(program, tuple(str(a) for a in args), env, str(args[0]))}


def nested_rows() -> list:
    rows = []
    limits = (0.10, 0.10, 0.12, 0.16, 0.26, 0.48)
    ratios = (150, 700, 2000, 4000, 6000, 7000)
    for size, limit, ratio in zip(TEAM_SIZES, limits, ratios):
        sources = openmp("nested", "nested", size)
        sources["tbb"] = Source("tbb", ("nested", str(size)), (), "nested")
        targets = [at_most(limit), times("libgomp", ratio)]
        rows.append(Row("nested", f"nested-{size}", "us", sources, targets))
    for size in (2, 8, 64):
        sources = openmp("nested", "nested-once", size)
        sources["tbb"] = Source("tbb", ("nested-once", str(size)), (), "nested-once")
        rows.append(Row("nested", f"nested-once-{size}", "us", sources))
    for size in TEAM_SIZES:
        rows.append(
            Row("nested", f"nested-tls-{size}", "us", openmp("nested_tls", "nested", size)))
    for size in TEAM_SIZES:
        # Wall time is shared by two CPUs and member 0 is no ghost.
        def extra(strict, plain, size=size):
            return (strict - plain) * 1000 * 2 / (size - 1)

        rows.append(
            Row("nested", f"nested-tls-extra-{size}", "ns/ghost", {}, [at_most(15)],
                derived=((f"nested-tls-{size}", f"nested-{size}"), extra)))
    for size, limit in ((8, 0.4), (32, 1.5), (64, 3.5)):
        rows.append(
            Row("nested", f"nested-barrier-{size}", "us", openmp("nested", "nested-barrier", size),
                [at_most(limit)]))
    for shape in ("varying-flat", "varying-nested"):
        for first, second, limit in ((2, 4, 0.12), (4, 8, 0.15), (4, 64, 0.6)):
            rows.append(
                Row("nested", f"{shape}-{first}-{second}", "us",
                    openmp("nested", shape, first, second), [at_most(limit)]))
    rows.append(Row("nested", "fib-12", "us", openmp("nested", "fib", 12), [at_most(0.12)]))
    return rows


def sync_rows() -> list:
    rows = []
    limits = {1: (40, 12), 2: (180, 75), 8: (450, 250), 16: (800, 400), 64: (2500, 2000)}
    for threads, pair in limits.items():
        for case, limit in zip(("parallel", "barrier"), pair):
            rows.append(
                Row("sync", f"{case}-{threads}", "ns", openmp("sync", case, threads),
                    [at_most(limit), within("libgomp", 1)]))
    passive = (("OMP_WAIT_POLICY", "passive"),)
    active = (("OMP_WAIT_POLICY", "active"),)
    rows.append(
        Row("sync", "parallel-passive-2", "ns", openmp("sync", "parallel", 2, env=passive),
            [at_most(250), within("libgomp", 1)]))
    rows.append(
        Row("sync", "after-idle-passive-2", "ns", openmp("sync", "after-idle", 2, 200, env=passive),
            [within("libgomp", 1.2)]))
    rows.append(Row("sync", "after-idle-2", "ns", openmp("sync", "after-idle", 2, 200)))
    # A lock's cost per execution; 64 threads share the two CPUs.
    limits = {1: 10, 2: 25, 64: 28}
    for case in ("critical", "lock"):
        for threads, limit in limits.items():
            rows.append(
                Row("sync", f"{case}-{threads}", "ns", openmp("sync", case, threads),
                    [at_most(limit)]))
    for case, targets in (("single", [at_most(130)]), ("atomic", []), ("reduction", [at_most(300)])):
        rows.append(Row("sync", f"{case}-2", "ns", openmp("sync", case, 2), targets))
    amounts = (("200ns", 200, 1.3), ("2us", 2000, 1.8), ("1ms", 1000000, 1.9))
    for shape in ("flat", "nested", "nested-one"):
        for suffix, env in (("", active), ("-passive", passive)):
            for label, nanoseconds, limit in amounts:
                rows.append(
                    Row("sync", f"helping-{shape}-{label}{suffix}", "x",
                        openmp("helping", shape, nanoseconds, env=env), [at_least(limit)],
                        higher_is_better=True))
    return rows


def waiting_rows() -> list:
    """Members that wait without the runtime."""
    rows = []
    for threads, limit in ((3, None), (4, 30), (8, 40), (16, None)):
        targets = [within("libgomp", 1)] + ([at_most(limit)] if limit else [])
        rows.append(Row("waiting", f"yield-{threads}", "us", openmp("waiting", "yield", threads), targets))
        rows.append(
            Row("waiting", f"yield-ring-{threads}", "us", openmp("waiting", "yield-ring", threads),
                [within("libgomp", 1)]))
    for threads in (2, 4, 8):
        rows.append(
            Row("waiting", f"sleep-ring-{threads}", "us", openmp("waiting", "sleep-ring", threads),
                [within("libgomp", 1)]))
    for threads, limit in ((2, None), (3, 1000), (4, 2000), (8, 4000)):
        rows.append(
            Row("waiting", f"flag-ring-{threads}", "us", openmp("waiting", "flag-ring", threads),
                [at_most(limit)] if limit else []))
    for threads in (4, 8, 16):
        for lock in ("spin-lock", "test-lock"):
            rows.append(Row("waiting", f"{lock}-{threads}", "us", openmp("waiting", lock, threads),
                            [within("libgomp", 1)]))
    # With inner teams of one a member has the work of all.
    for case, limit in (("flag-stages", 5), ("flag-stages-short", 70)):
        for outer, inner in ((2, 2), (4, 2), (2, 4), (4, 4)):
            name = f"{case}-{outer}-{inner}"
            floor = f"{case}-{outer}-1-of-{inner}"
            rows.append(Row("waiting", name, "us", openmp("waiting", case, outer, inner)))
            rows.append(Row("waiting", floor, "us", openmp("waiting", case, outer, 1, inner)))
            rows.append(
                Row("waiting", f"{name}-cost", "ratio", {}, [at_most(limit)] if (outer, inner) == (2, 2) else [],
                    derived=((name, floor), lambda with_teams, alone: with_teams / alone)))
    return rows


def switch_rows() -> list:
    def row(name, unit, internal, kernel, targets=()):
        sources = {"internal": Source("bosk-bench-switch", (), (), internal)}
        if kernel:
            sources["kernel"] = Source("kernel_switch", (), (), kernel)
        return Row("switch", name, unit, sources, list(targets))

    def kernel_only(name, unit):
        return Row("switch", name, unit, {"kernel": Source("kernel_switch", (), (), name)})

    return [
        row("round-trip", "ns", "round-trip", "round-trip", [at_most(27)]),
        row("yield", "cycles", "yield-cycles", "yield-cycles", [at_most(120)]),
        row("switch", "cycles", "switch-cycles", "switch-cycles", [at_most(80)]),
        row("thread", "ns", "thread", "create-join"),
        row("bubble", "ns", "bubble", None, [at_most(100)]),
        Row("switch", "bubble-over-thread", "ratio", {}, [at_most(1.05)],
            derived=(("bubble", "thread"), lambda bubble, thread: bubble / thread)),
        row("preemption", "us", "preemption", None, [at_most(2.5)]),
        row("preemption-floor", "us", "preemption-floor", None),
        row("preemption-share", "%", "preemption-share", None, [at_most(0.5)]),
        row("ghost-memory", "B", "ghost-memory", None, [at_most(0)]),
        row("thread-memory", "KiB", "thread-memory", None, [at_most(64)]),
        row("yield-and-switch", "ns", "yield-and-switch", "yield-and-switch"),
        row("yield-and-switch-cycles", "cycles", "yield-and-switch-cycles",
            "yield-and-switch-cycles"),
        kernel_only("futex-handover", "ns"),
        kernel_only("futex-handover-cycles", "cycles"),
        kernel_only("swapcontext", "ns"),
        kernel_only("swapcontext-cycles", "cycles"),
        kernel_only("create-join-cycles", "cycles"),
        kernel_only("switches-per-yield", "switches"),
    ]


def task_rows() -> list:
    def row(case, threads, limit=None, unit="ns", name=None):
        return Row("tasks", name or f"task-{case}-{threads}", unit, openmp("tasks", case, threads),
                   [] if limit is None else [at_most(limit)])

    rows = [row("fib", threads, limit) for threads, limit in ((2, 14), (4, 16), (16, 20))]
    rows[0].sources["tbb"] = Source("tbb", ("fib",), (), "fib")
    # n-queens 9 with a task for each placement that is tried, and with one for each that fits.
    rows += [row("placements", threads, limit, "ms") for threads, limit in ((2, 2.5), (16, 3.5))]
    rows.append(row("queens", 2))
    rows += [row("flat", threads, limit) for threads, limit in ((2, 20), (4, 25), (16, 30))]
    rows += [row("chain", 2, 120), row("grid", 2, 200), row("taskloop", 2, 4)]
    # A whole loop of 128 iterations, with its barrier; and one iteration of a long loop.
    rows += [row("short-dynamic", 2, 1000, name="loop-dynamic-128"),
             row("short-guided", 2, 400, name="loop-guided-128")]
    rows += [row("loop-dynamic", 2), row("loop-guided", 2)]
    return rows


def zone_rows() -> list:
    def row(*case, targets=()):
        return Row("zones", "zones-" + "-".join(str(part) for part in case), "ms",
                   openmp("zones", *case), list(targets))

    rows = [row("sequential"), row("outer", 16), row("inner", 2)]
    rows += [row(case, outer, inner)
             for outer, inner in ((2, 2), (4, 4), (16, 2), (16, 8)) for case in ("nested", "told")]
    # Of half of the sequential time: what two CPUs could do at best.
    rows.append(
        Row("zones", "zones-balance", "%", {}, [at_least(95)], higher_is_better=True,
            derived=(("zones-sequential", "zones-told-16-2"),
                     lambda sequential, told: 100 * sequential / 2 / told)))
    rows.append(
        Row("zones", "zones-told-over-best", "ratio", {}, [at_most(1)],
            derived=(("zones-told-16-2", "zones-outer-16", "zones-inner-2"),
                     lambda told, outer, inner: told / min(outer, inner))))
    # Counted on an invented machine, so on two CPUs too; a library beside bosk (--peer) must be bosk's.
    machine = (("BOSK_SYNTHETIC", "node:4 core:4 pu:1"), ("BOSK_WORKERS", "16"))
    for output, target, higher in (("largest-node", at_most(110), False), ("whole-teams", at_least(90), True),
                                   ("whole-work", at_least(90), True)):
        source = Source("whole_teams", ("16", "4", "20"), machine, output)
        rows.append(Row("zones", f"zones-{output}", "%", {"bosk": source, "base": source}, [target], higher))
    return rows


def startup_rows() -> list:
    rows = []
    for regions, name, limit in ((0, "start-no-region", 0.5), (1, "start-one-region", 5)):
        args = ("{libdir}", "{programs}/startup_app", str(regions))
        rows.append(
            Row("startup", name, "ms",
                {"openmp": Source("startup_driver", args, (), "startup")},
                [plus("libgomp", limit)]))
    return rows


def mesh_rows() -> list:
    """The applications of Thibault 2005 (table 2, and the refined mesh that its section 5 announces)."""
    bound = (("OMP_PROC_BIND", "close"), ("OMP_PLACES", "cores"))
    # As many threads as processors; bubbles: two groups of two.
    versions = (("sequential", 1, 1, ()), ("simple", 1, 2, ()), ("bound", 1, 2, bound),
                ("bubbles", 2, 2, ()))
    rows = []
    for work in ("conduction", "advection"):
        for version, groups, threads, env in versions:
            name = f"{work}-{version}"
            rows.append(Row("meshes", name, "ms",
                            openmp("stencil", name, groups, threads, env=env)))
        rows.append(
            Row("meshes", f"{work}-speedup", "x", {}, higher_is_better=True,
                derived=((f"{work}-sequential", f"{work}-bubbles"), lambda one, all: one / all)))
    for version in ("sequential", "handmade", "opportunist", "bubbles"):
        rows.append(Row("meshes", f"amr-{version}", "ms", openmp("amr", f"amr-{version}", 2)))
    explicit = ("amr-explicit", "2")
    rows.append(Row("meshes", explicit[0], "ms", {"bosk": Source("amr", explicit, (), explicit[0])}))
    for version in ("handmade", "opportunist", "bubbles"):
        sources = {"openmp": Source("amr", (f"amr-{version}", "2"), (), "lines")}
        rows.append(Row("meshes", f"amr-{version}-lines", "lines", sources))
    rows.append(Row("meshes", "amr-explicit-lines", "lines",
                    {"bosk": Source("amr", explicit, (), "lines")}))
    return rows


def fibonacci_rows() -> list:
    """Thibault 2005, figure 5: every call opens a region of two, with bubbles and without."""
    plain = (("BOSK_POLICY", "null"),)
    # What OpenMP regions have by default on machines where it matters; here it has to be asked for.
    bubbles = (("BOSK_POLICY", "spread:100"),)
    rows = []
    for number in (6, 9, 12, 15):
        names = (f"fibonacci-{number}-bubbles", f"fibonacci-{number}-null")
        for name, env in zip(names, (bubbles, plain)):
            rows.append(Row("fibonacci", name, "us", openmp("nested", "fib", number, env=env)))
        rows.append(
            Row("fibonacci", f"fibonacci-{number}-cost", "x", {}, [at_most(1.02)],
                derived=(names, lambda with_bubbles, without: with_bubbles / without)))
    # The paper's own program: a thread for each call, by bosk.h. Its threads took 3.3 us to make and join.
    for number, work in ((6, 0), (12, 0), (12, 50000)):
        suffix = f"{number}-work" if work else str(number)
        names = (f"fibonacci-threads-{suffix}-bubbles", f"fibonacci-threads-{suffix}-list")
        for name in names:
            args = (name.rpartition("-")[2], str(number), str(work))
            rows.append(Row("fibonacci", name, "us", {"bosk": Source("fibonacci", args, (), args[0])}))
        rows.append(
            Row("fibonacci", f"fibonacci-threads-{suffix}-cost", "x", {}, [at_most(1.02)],
                derived=(names, lambda with_bubbles, without: with_bubbles / without)))
    return rows


def binding_rows() -> list:
    """Workers with homes, which two CPUs have only where it is asked for, against those without."""
    homes = (("BOSK_WORKER_HOMES", "on"),)
    unbound = (("BOSK_WORKER_HOMES", "off"),)
    rows = []
    for case in ("alone", "two", "foreign"):
        names = (f"binding-{case}-homes", f"binding-{case}-unbound")
        rows.append(Row("binding", names[0], "us", openmp("binding", case, env=homes)))
        rows.append(Row("binding", names[1], "us", openmp("binding", case, env=unbound)))
        rows.append(
            Row("binding", f"binding-{case}-cost", "x", {}, [at_most(1.15)],
                derived=(names, lambda with_homes, without: with_homes / without)))
    return rows


def report_rows() -> list:
    """What `bosk run --report` costs: regions with what it sets, and without."""
    # Files of some 500 KiB, one a process.
    folder = tempfile.TemporaryDirectory(prefix="bosk-bench-")
    atexit.register(folder.cleanup)
    told = (("BOSK_REPORT_DATA", folder.name),)
    cases = [(f"nested-{size}", "us", ("nested", "nested", size)) for size in (2, 8, 64)]
    cases += [(f"{case}-{size}", "ns", ("sync", case, size)) for case in ("parallel", "barrier") for size in (2, 8)]
    rows = []
    for case, unit, program in cases:
        names = (f"report-{case}", f"report-{case}-none")
        for name, env in zip(names, (told, ())):
            rows.append(Row("report", name, unit, {"bosk": Source(program[0], tuple(str(a) for a in program[1:]), env, program[1])}))
        to_ns = 1000 if unit == "us" else 1
        rows.append(
            Row("report", f"report-{case}-extra", "ns", {}, [at_most(15)],
                derived=(names, lambda told, none, to_ns=to_ns: (told - none) * to_ns)))
    return rows


def policy_rows() -> list:
    def row(name, unit, limit=None):
        sources = {"internal": Source("bosk-bench-policies", (), (), name)}
        return Row("policies", name, unit, sources, [] if limit is None else [at_most(limit)])

    # Searching: 12 ns and 8 ns a level.
    rows = [row(f"search-{levels}", "ns", 12 + 8 * levels) for levels in range(2, 8)]
    rows += [row("regenerate-8", "us"), row("regenerate-64", "us", 20)]
    rows += [row("distribute-100000", "ms", 50), row("close-100000", "ms")]
    return rows


def next_touch_rows() -> list:
    def row(name, unit, limit=None):
        name = f"next-touch-{name}"
        sources = {"internal": Source("bosk-bench-next_touch", (), (), name)}
        return Row("next-touch", name, unit, sources, [] if limit is None else [at_most(limit)])

    # Marking: 2 us and 15 ns a page; the last one has 8192 pages.
    rows = [row("memcpy", "ns"), row("mark-1", "ns", 2015), row("mark-again", "ns"),
            row("mark", "ns", 15 + 2000 / 8192),
            row("bare-mark-1", "ns"), row("bare-touch-1", "us"), row("bare-copy-64", "ns"), row("bare-copy-512", "ns")]
    for kind, limits in (("copy", (5, 900, 700, None)), ("exchange", (5, 900, 700, None)), 
                         ("local", (5, 900, 700, None)),
                         ("sigsegv", (None,) * 4)):
        rows += [row(f"{kind}-{window}", "us" if window == 1 else "ns", limit)
                 for window, limit in zip((1, 64, 512, "adaptive"), limits)]
    return rows


def stream_rows() -> list:
    """Broquedis 2009, sections 4.2 to 4.4 (all variants of figures 2 and 3), and a blocked LU (Goglin 2009)."""
    rows = []
    for kernel in ("copy", "scale", "add", "triad"):
        for name, args in ((f"stream-{kernel}", (kernel, 2)),
                           (f"nested-stream-{kernel}", ("nested", kernel, 2, 2))):
            for which in ("worst", "best"):
                source = Source("stream", tuple(str(a) for a in args), (), which)
                rows.append(
                    Row("stream", f"{name}-{which}", "MB/s", {"openmp": source},
                        higher_is_better=True))
    figures = (("all", ("nothing", "memory", "threads"), (1, 8, 64)),
               ("two", ("nothing", "both", "read", "written", "mixed"), (1, 8, 128)))
    for data, variants, counts in figures:
        for passes in counts:
            for variant in variants:
                args = ("twisted", data, variant, str(passes), "2", "2")
                env = (("STREAM_KIB", "16384"),)
                # They bind the kernel thread that they are on, which should be nobody else's.
                if variant in ("threads", "mixed"):
                    env += (("BOSK_IDENTITY", "kthread"),)
                source = Source("stream", args, env, "twisted")
                rows.append(
                    Row("stream", f"twisted-{data}-{variant}-{passes}", "ms", {"openmp": source}))
            # By bosk's hints, and left to its policy: no other runtime knows these.
            for variant in ("next-touch", "policy"):
                args = ("twisted", data, variant, str(passes), "2", "2")
                env = (("STREAM_KIB", "16384"),) + \
                    ((("BOSK_POLICY", "memory"),) if variant == "policy" else ())
                source = Source("stream", args, env, "twisted")
                rows.append(
                    Row("stream", f"twisted-{data}-{variant}-{passes}", "ms", {"bosk": source}))
    for threads in (1, 2, 8):
        source = Source("lu", ("512", "32", str(threads)), (), "lu")
        rows.append(Row("stream", f"lu-{threads}", "ms", {"openmp": source}))
    return rows


def migration_rows() -> list:
    """What batches add to one move_pages of the same pages."""
    rows = []
    for pages in (1, 16, 512, 8192, 65536):
        names = (f"migrate-{pages}", f"move-pages-{pages}")
        for name in names:
            sources = {"internal": Source("bosk-bench-migration", (), (), name)}
            rows.append(Row("migration", name, "ns/page", sources))
        sources = {"internal": Source("bosk-bench-migration", (), (), f"migrate-over-{pages}")}
        rows.append(Row("migration", f"migrate-over-{pages}", "x", sources, [at_most(1.05)]))
    # Whole huge pages, of which the bare call is given the first page each; and parts of them.
    for name, unit, targets in (("migrate-huge-1", "us/page", []), ("move-pages-huge-1", "us/page", []),
                                ("migrate-over-huge-1", "x", [at_most(1.05)]),
                                ("migrate-huge-16", "us/page", []), ("move-pages-huge-16", "us/page", []),
                                ("migrate-over-huge-16", "x", [at_most(1.05)]),
                                ("split-huge", "us", [at_most(250)])):
        sources = {"internal": Source("bosk-bench-migration", (), (), name)}
        rows.append(Row("migration", name, unit, sources, targets))
    return rows


def memory_rows() -> list:
    def row(name, unit, limit=None):
        sources = {"internal": Source("bosk-bench-memory_manager", (), (), name)}
        return Row("memory", name, unit, sources, [] if limit is None else [at_most(limit)])

    # Allocating and freeing in turn, and with 64 blocks held: two threads, ns a block. All of them in one process, in turns.
    rows = []
    for size in (64, 256, 1024, 4096, 16384, 65536):
        for name in (f"alloc-{size}", f"alloc-{size}-held"):
            rows += [row(f"{name}-{whose}", "ns") for whose in ("bosk", "glibc", "mimalloc")]
            rows += [row(f"{name}-over-glibc", "x", 1.0), row(f"{name}-over-mimalloc", "x")]
    return rows + [row("look-up", "ns", 100), row("attach", "ns", 1000), row("detach-all", "ns"),
                   row("register", "ns")]


GROUPS = {
    "nested": nested_rows,
    "sync": sync_rows,
    "switch": switch_rows,
    "waiting": waiting_rows,
    "tasks": task_rows,
    "startup": startup_rows,
    "meshes": mesh_rows,
    "zones": zone_rows,
    "fibonacci": fibonacci_rows,
    "binding": binding_rows,
    "report": report_rows,
    "policies": policy_rows,
    "next-touch": next_touch_rows,
    "stream": stream_rows,
    "migration": migration_rows,
    "memory": memory_rows,
}


def all_rows() -> list:
    return [row for make in GROUPS.values() for row in make()]
