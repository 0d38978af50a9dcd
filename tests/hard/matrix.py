#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The hard tests under all conditions, on the system's libgomp and on bosk: ./dev test --long [REGEX…] [options].

Each test runs with 1, 2, 3, 4, 8, 16 and 64 threads (those with a fixed number of threads: with that) under each condition:
plain, on one CPU, beside two busy loops, in a CPU quota (cgroup, half a CPU per CPU). Each of these cells runs --times times on
bosk and --stock-times times on libgomp; the wait policy and binding change from run to run, so that each of their
four combinations has a quarter of the runs. With --full every combination has all of them."""

import argparse
import hashlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

THREADS = (1, 2, 3, 4, 8, 16, 64)
CONDITIONS = ("plain", "one-cpu", "load", "quota")
SETTINGS = tuple(itertools.product(("passive", "active"), ("free", "bound")))


def arguments():
    parser = argparse.ArgumentParser(prog="./dev test --long", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="REGEX", help="only tests whose name matches one of them")
    parser.add_argument("--build", default="build", help="folder of the build (build)")
    parser.add_argument("--times", type=int, default=20, help="runs of a cell on bosk (20)")
    parser.add_argument("--stock-times", type=int, default=4, help="runs of a cell on libgomp (4)")
    parser.add_argument("--full", action="store_true", help="every combination of settings so often")
    parser.add_argument("--library", choices=("libgomp", "bosk", "both"), default="both")
    parser.add_argument("--threads", type=int, action="append", help="only with so many threads")
    parser.add_argument("--condition", choices=CONDITIONS, action="append", help="only under this one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at a time (CPUs)")
    # 200 bound members that spin for one another need 90 s on libgomp beside other tests: two CPUs, their kernel threads in turn.
    parser.add_argument("--limit", type=int, default=300, help="seconds until a run is a hang (300)")
    parser.add_argument("--resume", metavar="FILE",
                        help="note there what has passed, and leave out what it says has passed on the same library: "
                             "hours may be run in parts, and --times raised from part to part")
    parser.add_argument("--keep-going", action="store_true",
                        help="all runs of a cell, though one has failed")
    return parser.parse_args()


def tests_of(build, names):
    """What ctest would run: name, command, environment, fixed or not."""
    listed = subprocess.run(["ctest", "--test-dir", build, "-L", "^hard$", "--show-only=json-v1"],
                            check=True, capture_output=True, text=True).stdout
    tests = []
    for test in json.loads(listed)["tests"]:
        properties = {p["name"]: p["value"] for p in test["properties"]}
        if names and not any(re.search(name, test["name"]) for name in names):
            continue
        environment = dict(setting.split("=", 1) for setting in properties.get("ENVIRONMENT", []))
        tests.append({"name": test["name"], "command": test["command"], "environment": environment,
                      "fixed": "fixed" in properties.get("LABELS", []),
                      "skip": properties.get("SKIP_RETURN_CODE"),
                      "folder": properties.get("WORKING_DIRECTORY", build)})
    return tests


class Quota:
    """A control group whose members get half of each CPU's time; None of it where that cannot be made."""

    def __init__(self):
        self.folder = self.why = None
        for root, setter in (("/sys/fs/cgroup", self._second), ("/sys/fs/cgroup/cpu", self._first)):
            folder = os.path.join(root, f"bosk-hard-{os.getpid()}")
            try:
                if setter is self._second:
                    with open(os.path.join(root, "cgroup.controllers"), encoding="ascii") as file:
                        if "cpu" not in file.read().split():
                            raise OSError("no cpu controller")
                    try:
                        self._write(os.path.join(root, "cgroup.subtree_control"), "+cpu")
                    except OSError:
                        pass  # it may be on already
                elif not os.path.isdir(root):
                    raise OSError("no such hierarchy")
                os.mkdir(folder)
                self.folder = folder
                setter(folder)
                return
            except OSError as error:
                self.why = str(error)
                self.remove()

    @staticmethod
    def _write(path, text):
        with open(path, "w", encoding="ascii") as file:
            file.write(text)

    def _second(self, folder):
        self._write(os.path.join(folder, "cpu.max"), f"{10000 * (os.cpu_count() or 1)} 20000")

    def _first(self, folder):
        self._write(os.path.join(folder, "cpu.cfs_period_us"), "20000")
        self._write(os.path.join(folder, "cpu.cfs_quota_us"), str(10000 * (os.cpu_count() or 1)))

    def prefix(self):
        return ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', self.folder]

    def remove(self):
        if self.folder is not None:
            try:
                os.rmdir(self.folder)
            except OSError:
                pass
            self.folder = None


class Load:
    """Two busy loops while it is entered. They end by themselves if this is killed."""

    LOOP = "import os\nwhile os.getppid() == %d:\n    for _ in range(1000000): pass"

    def __enter__(self):
        self.loops = [subprocess.Popen([sys.executable, "-c", self.LOOP % os.getpid()]) for _ in range(2)]

    def __exit__(self, *_):
        for loop in self.loops:
            loop.kill()
            loop.wait()


class Passed:
    """How often each cell has passed on a library, kept in a file, a line a cell and part."""

    def __init__(self, path, build):
        self.counts = {}
        self.path = path
        if path is None:
            return
        with open(os.path.join(build, "lib", "libgomp.so.1"), "rb") as library:
            self.build = hashlib.sha256(library.read()).hexdigest()[:16]
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                for line in file:
                    build_of, count, *key = line.split()
                    if build_of == self.build or key[1] == "libgomp":
                        self.counts[tuple(key)] = self.counts.get(tuple(key), 0) + int(count)

    def of(self, key):
        return self.counts.get(tuple(map(str, key)), 0)

    def note(self, key, count):
        if self.path is None or count == 0:
            return
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(" ".join([self.build, str(count), *map(str, key)]) + "\n")


class Matrix:
    def __init__(self, options):
        self.passed = Passed(options.resume, options.build)
        self.options = options
        self.lock = threading.Lock()
        self.failures = {}
        self.skipped = {}
        self.runs = self.failed = 0
        self.quota = None
        self.turns = itertools.count()
        self.seconds = {}

    def command(self, test, library, condition):
        command = list(test["command"])
        if library == "libgomp" and "--" in command and command[0].endswith("judge.sh"):
            command = command[command.index("--") + 1:]  # what bosk must say, libgomp need not
        if condition == "one-cpu":
            # Each run on one, in turn.
            cpus = sorted(os.sched_getaffinity(0))
            return ["taskset", "-c", str(cpus[next(self.turns) % len(cpus)])] + command
        if condition == "quota":
            return self.quota.prefix() + command
        return command

    def once(self, test, library, threads, condition, setting):
        """None if it passed, else a line."""
        environment = {key: value for key, value in os.environ.items()
                       if not re.match("(OMP|GOMP|KMP|BOSK)_|LD_LIBRARY_PATH|LD_PRELOAD", key)}
        environment.update(test["environment"])
        if library == "libgomp":
            environment.pop("LD_LIBRARY_PATH", None)
        if not test["fixed"]:
            environment["OMP_NUM_THREADS"] = str(threads)
        policy, binding = setting
        environment["OMP_WAIT_POLICY"] = policy
        if binding == "bound":
            environment["OMP_PROC_BIND"] = "true"
        environment["BOSK_TEST_ALARM"] = str(self.options.limit)
        environment["BOSK_TEST_WAIT_MS"] = "100"
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(self.command(test, library, condition), env=environment, stdout=output,
                                       stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=test["folder"],
                                       start_new_session=True)
            try:
                status = process.wait(self.options.limit + 10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                status = "hang"
            if status == 0:
                return None
            if test["skip"] is not None and status == test["skip"]:
                with self.lock:
                    self.skipped[test["name"]] = "cannot be run here"
                return None
            output.seek(0)
            lines = output.read().decode(errors="replace").strip().splitlines()
        return f"status {status}: {lines[-1] if lines else 'no output'}"

    def cell(self, test, library, threads, condition):
        times = self.options.times if library == "bosk" else self.options.stock_times
        order = [setting for setting in SETTINGS for _ in range(times)] if self.options.full else [
            SETTINGS[i % len(SETTINGS)] for i in range(times)]
        key = (test["name"], library, "-" if test["fixed"] else threads, condition)
        before = self.passed.of(key)
        now_passed = 0
        for number, setting in enumerate(order[before:], before + 1):
            began = time.monotonic()
            problem = self.once(test, library, threads, condition, setting)
            with self.lock:
                self.runs += 1
                self.seconds[test["name"]] = self.seconds.get(test["name"], 0) + time.monotonic() - began
            if problem is None:
                now_passed += 1
                continue
            with self.lock:
                self.failed += 1
                entry = self.failures.setdefault(key, [0, len(order), setting, problem])
                entry[0] += 1
                first = entry[0] == 1
            if first:
                print(f"FAIL {test['name']} on {library}, {key[2]} threads, {condition}, {'/'.join(setting)}, "
                      f"run {number} of {len(order)}: {problem}", flush=True)
            if not self.options.keep_going:
                break
        with self.lock:
            self.passed.note(key, now_passed)

    def run(self):
        options = self.options
        tests = tests_of(options.build, options.names)
        if not tests:
            sys.exit("matrix: no test matches")
        libraries = ("libgomp", "bosk") if options.library == "both" else (options.library,)
        threads = tuple(options.threads or THREADS)
        start = time.monotonic()
        self.quota = Quota()
        try:
            for condition in options.condition or CONDITIONS:
                if condition == "quota" and self.quota.folder is None:
                    print(f"matrix: no CPU quota can be made here ({self.quota.why}): left out", flush=True)
                    continue
                for library in libraries:
                    cells = [(test, library, n, condition) for test in tests
                             for n in (threads[:1] if test["fixed"] else threads)]
                    print(f"matrix: {condition}, {library}: {len(tests)} tests, {len(cells)} cells", flush=True)
                    self.all_cells(cells, condition, start)
        finally:
            self.quota.remove()
        self.report(time.monotonic() - start)
        return 1 if self.failures else 0

    def all_cells(self, cells, condition, start):
        with Load() if condition == "load" else nullcontext(), ThreadPoolExecutor(self.options.jobs) as executor:
            for done, result in enumerate([executor.submit(self.cell, *cell) for cell in cells], 1):
                result.result()
                if done % 100 == 0:
                    print(f"matrix:   {done} of {len(cells)} cells, {self.runs} runs, {self.failed} failed, "
                          f"{(time.monotonic() - start) / 60:.0f} min", flush=True)

    def report(self, seconds):
        for name, why in sorted(self.skipped.items()):
            print(f"matrix: left out: {name}: {why}")
        if self.failures:
            print(f"{'test':40} {'library':8} {'threads':>7} {'condition':10} {'failed':>9}  first")
            for (name, library, threads, condition), (count, of, setting, problem) in sorted(
                    self.failures.items(), key=str):
                print(f"{name:40} {library:8} {threads:>7} {condition:10} {count:>4}/{of:<4}  "
                      f"{'/'.join(setting)}: {problem}")
        longest = sorted(self.seconds.items(), key=lambda entry: -entry[1])[:10]
        print("matrix: most time: " + ", ".join(f"{name} {spent:.0f} s" for name, spent in longest))
        print(f"matrix: {self.runs} runs in {seconds / 60:.1f} min, {self.failed} failed, "
              f"in {len(self.failures)} cells")


if __name__ == "__main__":
    sys.exit(Matrix(arguments()).run())
