# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the benchmark programs and runs one of them on one runtime ("lane")."""

import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

PROGRAMS_DIR = Path(__file__).resolve().parent / "programs"
INCLUDE_DIR = PROGRAMS_DIR.parent.parent / "include"
CLANG = "clang-19"
LLVM_LIBDIR = "/usr/lib/llvm-19/lib"
SCRUBBED = ("OMP_", "GOMP_", "KMP_", "LIBOMP_", "BOSK_", "TBB_", "LD_", "BENCH_")

# program -> (source, compilers, flags)
PROGRAMS = {
    "nested": ("nested.c", ("gcc", "clang"), ["-fopenmp"]),
    "nested_tls": ("nested.c", ("gcc", "clang"), ["-fopenmp", "-DBENCH_TLS"]),
    "sync": ("sync.c", ("gcc", "clang"), ["-fopenmp"]),
    "helping": ("helping.c", ("gcc", "clang"), ["-fopenmp"]),
    "tasks": ("tasks.c", ("gcc", "clang"), ["-fopenmp"]),
    "stencil": ("stencil.c", ("gcc", "clang"), ["-fopenmp", f"-I{INCLUDE_DIR}", "-lm"]),
    "amr": ("amr.c", ("gcc", "clang"), ["-fopenmp", f"-I{INCLUDE_DIR}", "-lm"]),
    "zones": ("zones.c", ("gcc", "clang"), ["-fopenmp", f"-I{INCLUDE_DIR}"]),
    "whole_teams": ("whole_teams.c", ("gcc", "clang"), ["-fopenmp", f"-I{INCLUDE_DIR}", "-lm"]),
    # It asks for functions that other runtimes do not have.
    "fibonacci": ("fibonacci.c", ("gcc", "clang"),
                  ["-fopenmp", f"-I{INCLUDE_DIR}", "-Wl,--no-as-needed"]),
    "binding": ("binding.c", ("gcc", "clang"), ["-fopenmp"]),
    "waiting": ("waiting.c", ("gcc", "clang"), ["-fopenmp"]),
    "stream": ("stream.c", ("gcc", "clang"), ["-fopenmp", f"-I{INCLUDE_DIR}"]),
    "lu": ("lu.c", ("gcc", "clang"), ["-fopenmp", f"-I{INCLUDE_DIR}", "-lm"]),
    "bandwidth": ("bandwidth.c", ("gcc",), ["-fopenmp"]),
    "page_paths": ("page_paths.c", ("gcc",), ["-fopenmp", f"-I{INCLUDE_DIR}", "-Wl,--no-as-needed"]),
    "startup_app": ("startup_app.c", ("gcc", "clang"), ["-fopenmp"]),
    "startup_driver": ("startup_driver.c", ("gcc",), []),
    "kernel_switch": ("kernel_switch.c", ("gcc",), ["-pthread"]),
    "tbb": ("tbb.cpp", ("g++",), ["-std=c++20", "-ltbb"]),
}
COMMANDS = {"gcc": "gcc", "clang": CLANG, "g++": "g++"}
ONLY_PLAIN = {"startup_driver", "kernel_switch", "tbb"}  # not compiled per OpenMP compiler


class BenchError(Exception):
    """Something that was to be measured could not be."""


@dataclass
class Lane:
    name: str
    kind: str  # openmp, tbb, kernel, internal: which source of a row it runs
    compiler: str = "gcc"
    libdir: str = ""  # goes into LD_LIBRARY_PATH; empty: the system's default
    library: str = ""  # the file that was resolved, for the report

    def environment(self, settings: dict) -> dict:
        env = {k: v for k, v in os.environ.items() if not k.startswith(SCRUBBED)}
        if self.libdir:
            env["LD_LIBRARY_PATH"] = self.libdir
        env.update(settings)
        return env


class Programs:
    """The compiled programs; a program is compiled again when its source is newer."""

    def __init__(self, folder: Path, bosk_bin: Path):
        self.folder = folder
        self.bosk_bin = bosk_bin
        self.unavailable = {}  # compiler -> why

    def build(self, say, compilers=COMMANDS, wanted=PROGRAMS) -> None:
        for program in wanted:
            source, its_compilers, flags = PROGRAMS[program]
            for compiler in its_compilers:
                if compiler in compilers and compiler not in self.unavailable:
                    self.build_one(program, PROGRAMS_DIR / source, compiler, flags, say)

    def build_one(self, program, source, compiler, flags, say) -> None:
        output = self.folder / compiler / program
        newest = max(file.stat().st_mtime for file in (source, *PROGRAMS_DIR.glob("*.h")))
        if output.exists() and output.stat().st_mtime > newest:
            return
        if shutil.which(COMMANDS[compiler]) is None:
            self.unavailable[compiler] = f"{COMMANDS[compiler]} is not installed"
            return
        output.parent.mkdir(parents=True, exist_ok=True)
        say(f"compiling {compiler}/{program}")
        # Libraries come after what needs them.
        command = [COMMANDS[compiler], "-O2", str(source), *flags, "-o", str(output)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
        reason = next((line for line in done.stderr.splitlines() if "error" in line), "no message")
        if compiler == "gcc":
            raise BenchError(f"{' '.join(command)} failed: {reason}")
        self.unavailable[compiler] = f"{program} does not compile: {reason.strip()}"

    def path(self, program: str, lane: Lane) -> Path:
        if program.startswith("bosk-bench-"):
            return self.bosk_bin / program
        if program == "tbb":
            return self.folder / "g++" / program
        return self.folder / ("gcc" if program in ONLY_PLAIN else lane.compiler) / program


def resolved_library(program: Path, lane: Lane, soname: str) -> str:
    """The file that the dynamic linker takes for `soname` on this lane."""
    env = lane.environment({"LD_TRACE_LOADED_OBJECTS": "1"})
    listing = subprocess.run([program], env=env, capture_output=True, text=True, check=False)
    for line in listing.stdout.splitlines():
        words = line.split()
        if len(words) >= 3 and words[0] == soname and words[1] == "=>" and words[2] != "not":
            return words[2]
    return ""


def find_lanes(programs: Programs, bosk_libdir: Path, peers: list) -> tuple[list, list]:
    """The lanes that can run here, and a line for each that cannot."""
    lanes, skipped = [], []

    def add(lane: Lane, program: str, soname: str, expected_dir: str = "") -> None:
        if lane.compiler in programs.unavailable:
            skipped.append(f"{lane.name}: skipped, {programs.unavailable[lane.compiler]}")
            return
        lane.library = resolved_library(programs.path(program, lane), lane, soname)
        if not lane.library:
            skipped.append(f"{lane.name}: skipped, {soname} is not installed")
            return
        if expected_dir and Path(lane.library).parent.resolve() != Path(expected_dir).resolve():
            skipped.append(f"{lane.name}: skipped, the linker takes {lane.library}, not the one "
                           f"in {expected_dir}")
            return
        lane.library = os.path.realpath(lane.library)
        lanes.append(lane)

    if (bosk_libdir / "libgomp.so.1").exists():
        lane = Lane("bosk", "openmp", "gcc", str(bosk_libdir))
        add(lane, "nested", "libgomp.so.1", str(bosk_libdir))
    else:
        skipped.append(f"bosk: skipped, no libgomp.so.1 in {bosk_libdir} (./dev build makes it; "
                       "--bosk LIBDIR names another folder)")
    add(Lane("libgomp", "openmp", "gcc"), "nested", "libgomp.so.1")
    llvm = LLVM_LIBDIR if Path(LLVM_LIBDIR).is_dir() else ""
    add(Lane("libomp", "openmp", "clang", llvm), "nested", "libomp.so.5")
    if not peers:
        skipped.append("other user-level-thread runtimes: none given (--peer NAME=LIBDIR)")
    for name, libdir, compiler in peers:
        soname = "libomp.so.5" if compiler == "clang" else "libgomp.so.1"
        if not (Path(libdir) / soname).exists():
            skipped.append(f"{name}: skipped, no {soname} in {libdir}")
        else:
            add(Lane(name, "openmp", compiler, libdir), "nested", soname)
    add(Lane("tbb", "tbb", "g++"), "tbb", "libtbb.so.12")
    lanes.append(Lane("kernel", "kernel"))
    if (programs.bosk_bin / "bosk-bench-switch").exists():
        with_bosk = 1 if lanes and lanes[0].name == "bosk" else 0
        lanes.insert(with_bosk, Lane("bosk internals", "internal"))
    else:
        skipped.append(f"bosk internals: skipped, no bosk-bench-switch in {programs.bosk_bin}")
    return lanes, skipped


def run_group(command: list, env: dict, timeout: float, what: str) -> tuple[int, str, str]:
    """Runs a command in a process group of its own, so that all it started ends with it."""
    with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
        except BaseException as stopped:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(stopped, subprocess.TimeoutExpired):
                raise BenchError(f"{what}: not finished after {timeout:g} s") from stopped
            raise
        return process.returncode, output, errors


def run_source(programs: Programs, lane: Lane, source, settings: dict, timeout: float):
    """Runs one process. Returns ({name: (value, unit)}, [lines it wrote to stderr])."""
    program = programs.path(source.program, lane)
    args = list(source.args)
    run_lane = lane
    if "{libdir}" in args:  # the driver starts the program on the lane; itself it uses no runtime
        run_lane = Lane(lane.name, lane.kind)
        folder = programs.path("startup_app", lane).parent
        args = [a.replace("{libdir}", lane.libdir or "-").replace("{programs}", str(folder))
                for a in args]
    env = run_lane.environment({**settings, **dict(source.env)})
    what = " ".join([source.program, *[Path(a).name for a in args]])
    status, output, errors = run_group([str(program), *args], env, timeout, what)
    messages = [line for line in errors.splitlines() if line.strip()]
    if status != 0:
        said = f": {messages[0]}" if messages else ""
        how = f"signal {-status}" if status < 0 else f"exit {status}"
        raise BenchError(f"{what}: {how}{said}")
    values = {}
    for line in output.splitlines():
        words = line.split()
        try:
            values[words[0]] = (float(words[1]), words[2])
        except (IndexError, ValueError) as bad:
            raise BenchError(f"{what}: cannot read the line '{line}'") from bad
    return values, messages
