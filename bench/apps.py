#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole programs, as people install them, on the system's libgomp and on bosk in turn: ./dev bench apps [NAME…].

  ./dev bench apps                          all that is installed; says what is not
  ./dev bench apps dgemm xtb -t 2,4 -n 5    some, with 2 and 4 threads, 5 rounds
  ./dev bench apps --python ~/venv/bin/python3   with the wheels of that interpreter

What each takes: apt-get install libopenblas-openmp-dev xtb gromacs lammps cp2k libopenmpi-dev mpich libtbb-dev;
pip install scikit-learn xgboost lightgbm.
A ratio is bosk's median over libgomp's; in brackets the interval in which it lies with 95 % (bootstrap). Wall time is well
where the interval ends at 1.05 or has 1 in it; CPU time at 1.1, or where wall time is better by as much."""

import argparse
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Optional

REPO = Path(__file__).resolve().parent.parent
INPUTS = REPO / "bench" / "apps"
OPENBLAS = "/usr/lib/*/openblas-openmp/libopenblas.so.0"
WALL_LIMIT, CPU_LIMIT = 1.05, 1.1


class Missing(Exception):
    """What a program needs is not installed."""


@dataclass
class App:
    name: str
    what: str
    prepare: Callable  # (options, folder): makes inputs once; raises Missing
    command: Callable  # (options, folder, threads) -> list
    result: str = r".+"  # the line of its output that must be the same on both
    floor: Optional[Callable] = None  # (options, folder, threads) -> the same work without what is compared


def program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise Missing(f"there is no {name}")
    return path


def quietly(command: list, folder: Path, **more) -> None:
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          **more)
    if done.returncode != 0:
        sys.exit(f"apps: {' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout[-2000:]}")


# --- the programs -----------------------------------------------------------------------------------


def prepare_blas(_, folder: Path) -> None:
    libraries = sorted(Path("/").glob(OPENBLAS[1:]))
    if not libraries:
        raise Missing("there is no OpenBLAS for OpenMP (libopenblas-openmp-dev)")
    library = libraries[0]
    quietly(["g++", "-O2", "-fopenmp", f"-I/usr/include/{library.parent.parent.name}", INPUTS / "blas.cpp", library,
             f"-Wl,-rpath,{library.parent}", "-o", folder / "blas"], folder)


def dgemm(n: int, repetitions: int) -> App:
    return App(f"dgemm-{n}", f"OpenBLAS: {repetitions} products of {n} x {n}", prepare_blas,
               lambda _, folder, threads: [folder / "blas", "one", n, repetitions])


def nested_blas(outer: str, inner: int, n: int, repetitions: int) -> App:
    def command(_, folder, threads, inner=inner):
        return [folder / "blas", outer, threads, inner, n, repetitions]

    who = "an OpenMP region" if outer == "omp" else "std::thread"
    return App(f"nested-{outer}-{inner}-{n}", f"T threads ({who}) that call OpenBLAS with {inner} each: {n} x {n}",
               prepare_blas, command, floor=lambda options, folder, threads: command(options, folder, threads, 1))


def mpi(library: str, how: str, steps: int) -> App:
    def prepare(_, folder):
        compiler = program(f"mpicc.{library}")
        # The compiler's wrapper may be there without what it is for.
        if subprocess.run([compiler, "-E", "-include", "mpi.h", "-x", "c", os.devnull], capture_output=True,
                          check=False).returncode != 0:
            raise Missing(f"there is no mpi.h of {library}'s (lib{library}-dev)")
        quietly([compiler, "-O2", "-fopenmp", INPUTS / "mpi.c", "-o", folder / "mpi"], folder)

    def command(_, folder, __):
        start = [program(f"mpirun.{library}"), "-n", 2]
        # It binds each process to one CPU otherwise, and counts what it may start.
        return start + (["--bind-to", "none", "--oversubscribe"] if library == "openmpi" else []) + [folder / "mpi", how, steps]

    who = "the initial thread" if how == "funneled" else "every member"
    return App(f"{library}-{how}", f"2 processes of T threads, {who} passes messages: {steps} steps", prepare, command)


def prepare_tbb(_, folder: Path) -> None:
    if not Path("/usr/include/tbb/tbb.h").exists() and not Path("/usr/include/oneapi/tbb.h").exists():
        raise Missing("there is no TBB (libtbb-dev)")
    quietly(["g++", "-O2", "-fopenmp", INPUTS / "tbb.cpp", "-ltbb", "-o", folder / "tbb"], folder)


def alkane(carbons: int) -> str:
    atoms = []
    for i in range(carbons):
        x, y = 1.27 * i, 0.43 * (1 if i % 2 else -1)
        out = 0.63 if i % 2 else -0.63
        atoms += [("C", x, y, 0.0), ("H", x, y + out, 0.89), ("H", x, y + out, -0.89)]
        if i in (0, carbons - 1):
            atoms.append(("H", x + (-0.9 if i == 0 else 0.9), y - out, 0.0))
    return "\n".join([str(len(atoms)), "an alkane"] + [f"{e} {x:.3f} {y:.3f} {z:.3f}" for e, x, y, z in atoms]) + "\n"


def prepare_xtb(_, folder: Path) -> None:
    program("xtb")
    (folder / "alkane.xyz").write_text(alkane(40), encoding="ascii")


def prepare_gromacs(_, folder: Path) -> None:
    gmx = program("gmx")
    shutil.copy(INPUTS / "water.top", folder / "topol.top")
    quietly([gmx, "-quiet", "solvate", "-cs", "spc216.gro", "-box", "3", "3", "3", "-o", "conf.gro", "-p", "topol.top"],
            folder)
    quietly([gmx, "-quiet", "grompp", "-f", INPUTS / "water.mdp", "-c", "conf.gro", "-p", "topol.top", "-o", "water.tpr",
             "-maxwarn", "2"], folder)


def prepare_lammps(_, __) -> None:
    told = subprocess.run([program("lmp"), "-h"], stdout=subprocess.PIPE, text=True, check=False).stdout
    if re.search(r"\b(OPENMP|USER-OMP)\b", told) is None:
        raise Missing("this lmp was built without its package OPENMP")


def prepare_cp2k(_, __) -> None:
    program("cp2k.psmp")


def wheels(name: str, module: str) -> App:
    def prepare(options, _):
        found = subprocess.run([options.python, "-c", f"import numpy, {module}"], stderr=subprocess.DEVNULL, check=False)
        if found.returncode != 0:
            raise Missing(f"{options.python} has no {module} (--python)")

    return App(name, f"{module}, from a wheel", prepare,
               lambda options, _, threads: [options.python, INPUTS / "wheels.py", name, threads])


APPS = [
    dgemm(256, 400),
    dgemm(1024, 12),
    *[nested_blas(outer, inner, n, repetitions) for outer in ("omp", "std") for inner in (2, 4, 8)
      for n, repetitions in ((256, 60), (1024, 2))],
    App("xtb", "a chemistry code on LAPACK: an alkane of 40 carbons", prepare_xtb,
        lambda _, folder, threads: ["xtb", folder / "alkane.xyz", "--gfn", "2", "--sp", "--norestart"],
        r"TOTAL ENERGY +-?[0-9]+\.[0-9]{7}"),
    App("gromacs", "200 steps of a box of water", prepare_gromacs,
        lambda _, folder, threads: ["gmx", "-quiet", "mdrun", "-s", folder / "water.tpr", "-ntmpi", 1, "-ntomp", threads,
                                    "-pin", "off", "-nb", "cpu"], r"Writing final coordinates.*"),
    App("lammps", "4,000 atoms of a melting crystal", prepare_lammps,
        lambda _, folder, threads: ["lmp", "-in", INPUTS / "lj.in", "-sf", "omp", "-pk", "omp", threads, "-log", "none"],
        r"Total # of neighbors.*"),
    App("cp2k", "six molecules of water", prepare_cp2k,
        lambda _, folder, threads: ["cp2k.psmp", "-i", INPUTS / "water.inp"], r"ENERGY\| Total FORCE_EVAL.*-[0-9]+\.[0-9]{5}"),
    *[mpi(library, how, 300) for library in ("openmpi", "mpich") for how in ("funneled", "all")],
    App("tbb", "members that call loops of TBB's", prepare_tbb, lambda _, folder, threads: [folder / "tbb", 100]),
    wheels("boosting", "sklearn"),
    wheels("kmeans", "sklearn"),
    wheels("xgboost", "xgboost"),
    wheels("lightgbm", "lightgbm"),
]


# --- running and judging ----------------------------------------------------------------------------


@dataclass
class Run:
    wall: float
    cpu: float
    result: str


def run_once(command: list, prefix: list, env: dict, folder: Path, wanted: str, limit: float) -> Run:
    """Raises TimeoutError; any other end than a good one ends us."""
    with open(folder / "output", "w+b") as output:
        start = time.monotonic()
        child = subprocess.Popen([str(word) for word in prefix + command], env=env, cwd=folder, stdin=subprocess.DEVNULL,
                                 stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid != 0:
                break
            if time.monotonic() - start > limit:
                os.killpg(child.pid, 9)
                os.wait4(child.pid, 0)
                child.returncode = -9
                raise TimeoutError
            time.sleep(0.002)
        wall = time.monotonic() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode(errors="replace")
    if child.returncode != 0:
        sys.exit(f"apps: {' '.join(map(str, prefix + command))} ended with {child.returncode}:\n{text[-2000:]}")
    lines = re.findall(wanted, text)
    if not lines:
        sys.exit(f"apps: {command[0]} printed nothing like '{wanted}':\n{text[-2000:]}")
    return Run(wall, usage.ru_utime + usage.ru_stime, lines[-1])


def ratio_interval(mine: list, theirs: list, rounds: int = 2000) -> tuple:
    """Ratio of the medians, and where it lies in 95 % of draws of as many rounds from these."""
    draw = random.Random(1)
    pairs = list(zip(mine, theirs))
    ratios = []
    for _ in range(rounds):
        chosen = [draw.choice(pairs) for _ in pairs]
        ratios.append(statistics.median(m for m, _ in chosen) / statistics.median(t for _, t in chosen))
    ratios.sort()
    return (statistics.median(mine) / statistics.median(theirs), ratios[int(rounds * 0.025)], ratios[int(rounds * 0.975)])


def is_well(wall: tuple, cpu: tuple) -> tuple:
    """(wall time, CPU time) as the text at the top has it."""
    wall_is = wall[2] <= WALL_LIMIT or wall[1] <= 1 <= wall[2]
    return wall_is, cpu[0] <= max(CPU_LIMIT, 1 / wall[0] if wall[0] < 1 else 0) or cpu[1] <= 1


def measure(app: App, options, folder: Path) -> list:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_", "KMP_", "BOSK_", "LD_", "OPENBLAS_"))}
    # An MPI library that is started alone, in a container, by whoever is there.
    env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "GMX_MAXBACKUP": "-1"}
    rows = []
    for threads in options.threads:
        env["OMP_NUM_THREADS"] = str(threads)
        lanes = {"libgomp": [], "bosk": [str(options.bosk), "run"]}
        commands = {lane: app.command(options, folder, threads) for lane in lanes}
        if app.floor is not None:
            lanes["floor"], commands["floor"] = [], app.floor(options, folder, threads)
        runs = {lane: [] for lane in lanes}
        late = None
        order = list(lanes)
        for number in range(options.runs + 1):
            for lane in order[number % len(order):] + order[:number % len(order)]:
                try:
                    done = run_once(commands[lane], lanes[lane], env, folder, app.result, options.limit)
                except TimeoutError:
                    late = lane
                    break
                if number > 0:  # the first round fills the caches of files
                    runs[lane].append(done)
            if late is not None:
                break
        row = {"app": app.name, "threads": threads, "late": late}
        if late is None:
            different = {run.result for run in runs["libgomp"]} != {run.result for run in runs["bosk"]}
            wall, cpu = ({lane: [getattr(run, what) for run in runs[lane]] for lane in runs} for what in ("wall", "cpu"))
            row |= {"wall": wall, "cpu": cpu, "different": different,
                    "wall_ratio": ratio_interval(wall["bosk"], wall["libgomp"]),
                    "cpu_ratio": ratio_interval(cpu["bosk"], cpu["libgomp"])}
            if "floor" in lanes:
                row["floor_ratio"] = ratio_interval(wall["bosk"], wall["floor"])
        rows.append(row)
        print(line_of(row), flush=True)
    return rows


HEADER = ("| program | T | libgomp, s | wall, bosk / libgomp | CPU | over the floor | |\n|---|---|---|---|---|---|---|")


def line_of(row: dict) -> str:
    begin = f"| {row['app']} | {row['threads']} |"
    if row["late"] is not None:
        return f"{begin} | | | | {row['late']} took longer than the limit |"

    def text(ratio):
        return f"{ratio[0]:.2f} [{ratio[1]:.2f}–{ratio[2]:.2f}]"

    wall, cpu = is_well(row["wall_ratio"], row["cpu_ratio"])
    verdict = [word for word, well in (("wall", wall), ("CPU", cpu)) if not well]
    remarks = ["short: " + ", ".join(verdict)] if verdict else ["well"]
    if row["different"]:
        remarks.append("another result")
    floor = text(row["floor_ratio"]) if "floor_ratio" in row else ""
    return (f"{begin} {statistics.median(row['wall']['libgomp']):.2f} | {text(row['wall_ratio'])} | {text(row['cpu_ratio'])} |"
            f" {floor} | {'; '.join(remarks)} |")


def parse_arguments(argv: list) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench apps", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs whose name begins so: "
                        + ", ".join(app.name for app in APPS))
    parser.add_argument("-t", "--threads", default="2,3,4,8,16", help="numbers of threads (2,3,4,8,16)")
    parser.add_argument("-n", "--runs", type=int, default=9, help="rounds (9)")
    parser.add_argument("--limit", type=float, default=60, help="seconds for one run (60)")
    parser.add_argument("--python", default=sys.executable, help="interpreter that has the wheels (this one)")
    parser.add_argument("--bosk", type=Path, default=REPO / "build" / "bin" / "bosk")
    parser.add_argument("--json", metavar="FILE", help="write all figures to FILE")
    options = parser.parse_args(argv)
    try:
        options.threads = [int(word) for word in options.threads.split(",")]
    except ValueError:
        parser.error("--threads: numbers, with commas between them")
    if min(options.threads) < 1 or options.runs < 1:
        parser.error("--threads and --runs: 1 at least")
    unknown = [name for name in options.names if not any(app.name.startswith(name) for app in APPS)]
    if unknown:
        parser.error(f"no program is called {unknown[0]}; there are: {', '.join(app.name for app in APPS)}")
    return options


def main(argv: list) -> int:
    options = parse_arguments(argv)
    options.bosk = options.bosk.resolve()
    rows = []
    folder = REPO / "build" / "bench" / "apps"
    wanted = [app for app in APPS if not options.names or any(app.name.startswith(name) for name in options.names)]
    print(HEADER)
    for app in wanted:
        place = folder / app.name
        place.mkdir(parents=True, exist_ok=True)
        try:
            app.prepare(options, place)
        except Missing as missing:
            print(f"| {app.name} | | | | | | not measured: {missing} |", flush=True)
            continue
        rows += measure(app, options, place)
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
