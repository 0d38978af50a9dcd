# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs one program with a time limit that holds for everything it starts."""

import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

OUTPUT_KEPT = 1 << 20
LARGEST_FILE = 256 << 20
SETTINGS = re.compile(r"(OMP|GOMP|KMP|BOSK|ACC)_|LD_PRELOAD$|LD_LIBRARY_PATH$")


@dataclass
class Outcome:
    """How a program ended: `status` as subprocess gives it (negative: a signal)."""
    status: int
    output: str
    timed_out: bool = False
    seconds: float = 0

    def end(self) -> str:
        if self.timed_out:
            return "time limit"
        if self.status < 0:
            try:
                return signal.Signals(-self.status).name
            except ValueError:
                return "signal %d" % -self.status
        return "exit %d" % self.status

    def first_line(self) -> str:
        return next((line.strip() for line in self.output.splitlines() if line.strip()), "")


def environment(settings: dict, library: Path = None) -> dict:
    """The caller's, without what would change what OpenMP programs do."""
    result = {name: value for name, value in os.environ.items() if not SETTINGS.match(name)}
    # GCC's own runner gives tests a terminal, where Fortran writes at once: lines then come in order.
    result.update(settings, LC_ALL="C", LANG="C", GFORTRAN_UNBUFFERED_PRECONNECTED="1")
    if library:
        result["LD_LIBRARY_PATH"] = str(library)
    return result


def limit_this_process():
    """No core files and no endless output, here and in all that is started from here: a limit set
    between fork and exec is not safe in a process with threads."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))


def kill_group(leader: int):
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(command: list, env: dict, seconds: float) -> Outcome:
    """Runs in a folder of its own, as a session of its own: what is left of it is killed."""
    folder = tempfile.mkdtemp(prefix="conformance-")
    try:
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=subprocess.STDOUT,
                                       start_new_session=True)
            timed_out, began = False, time.monotonic()
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                timed_out = True
            finally:
                kill_group(process.pid)
                process.wait()
            seconds = time.monotonic() - began
            output.seek(0)
            text = output.read(OUTPUT_KEPT).decode("utf-8", errors="replace")
        return Outcome(process.returncode, text, timed_out, seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
