# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles tests, once: a program is kept together with the command that made it."""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from suite import Test

COMPILERS = {"c": ["gcc"], "c++": ["g++", "-x", "c++"], "fortran": ["gfortran"]}
PLAIN = ["-fmessage-length=0", "-fno-diagnostics-show-caret", "-fdiagnostics-color=never"]
SECONDS = 120


@dataclass
class Program:
    """What became of a test's source: a file to run, or why there is none."""
    path: Path = None
    problem: str = ""


class Builder:
    """Compiles into `place`; `identity` names the suite and the compiler."""

    def __init__(self, source: Path, place: Path, identity: str):
        self.source, self.place, self.identity = source, place, identity

    def folder(self, test: Test) -> Path:
        return self.place / re.sub(r"[^-\w.+/@]", "_", test.name)

    def command(self, test: Test, output: Path, library: Path = None) -> list:
        sources = [test.source] + [test.source.parent / name for name in test.directives.sources]
        libraries = [flag for flag in test.flags if flag.startswith("-l")]
        flags = [flag for flag in test.flags if not flag.startswith("-l")]
        return [*COMPILERS[test.language], *PLAIN, "-I", self.source / "include", "-I",
                self.source / "libgomp", *flags, *sources,
                *(["-L", library] if library else []), *libraries, "-lm", "-o", output]

    def build(self, test: Test) -> Program:
        folder = self.folder(test)
        output = folder / "program"
        stamp = folder / "stamp"
        command = [str(word) for word in self.command(test, output)]
        key = json.dumps([self.identity, command])
        if stamp.exists() and stamp.read_text(encoding="utf-8") == key:
            return Program(path=output)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        problem = self.compile(command, folder)
        if problem:
            return Program(problem=problem)
        stamp.write_text(key, encoding="utf-8")
        return Program(path=output)

    def link(self, test: Test, library: Path) -> str:
        """Links against the libgomp.so in `library` instead of the system's; "" or what was wrong.
        Never kept: the library is what changes."""
        folder = self.folder(test) / "linked"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        command = [str(word) for word in self.command(test, folder / "program", library)]
        return self.compile(command, folder)

    @staticmethod
    def compile(command: list, folder: Path) -> str:
        try:
            result = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, text=True,
                                    errors="replace", stdout=subprocess.PIPE, timeout=SECONDS,
                                    stderr=subprocess.STDOUT, check=False)
        except subprocess.TimeoutExpired:
            return "the compiler took over %d s" % SECONDS
        if result.returncode == 0:
            return ""
        errors = [line for line in result.stdout.splitlines()
                  if re.search(r"error|undefined|cannot", line, re.IGNORECASE)]
        return (errors or result.stdout.splitlines() or ["the compiler failed"])[0].strip()
