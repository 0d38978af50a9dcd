#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the fenced blocks of documents: check_docs.py --source DIR --build DIR --cc CC --cxx CXX [--lab] DOCUMENT…

What a block is says its info string; one without is a failure, and so is an indented one:
  sh            each line is a command that ends with 0
  console       so is each line after "$ "; the lines that follow are in what it prints, in this order
  c, cpp        compiled, linked with bosk and run: tests/docs/DOCUMENT-N.c (.cpp) includes the N-th such block of
                the document as "block.inc" and says what has to come of it. A block with a main() needs none
  text, cmake   a picture or a form: nothing to run
An HTML comment in the line before a block changes that:
  <!-- not run: REASON -->     it is left out
  <!-- from FILE -->           its lines stand in this file of the source, in this order
  <!-- printed by FILE -->     this program of the source prints its lines, in this order
  <!-- one node: REASON -->    it is left out where there are more NUMA nodes
A number stands for any number, an ellipsis for anything, blanks for any blanks, and a noun after a number for its
singular and plural. Commands run in a scratch folder with the files of tests/docs/scratch, compiled programs from there,
the documents' blocks as block-N.inc, and `build`. With --lab only `bosk lab` runs, without it all but that."""

import argparse
import collections
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

LIMIT = 300  # seconds for one command; documents promise two minutes, on a machine that has nothing else to do
KINDS = ("sh", "console", "c", "cpp", "text", "cmake")
NUMBER = r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?"
PIECES = re.compile(rf"(?P<rest>…|\.\.\.)|(?P<hex>0x[0-9a-f]+)|(?P<counted>{NUMBER}\s+[a-z]+)|(?P<number>{NUMBER})"
                    r"|(?P<unknown>(?<!\S)-(?!\S))|(?P<blanks>\s+)|(?P<text>.)")

Block = collections.namedtuple("Block", "line kind mark about lines")


class Failure(Exception):
    pass


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("source", "build", "cc", "cxx"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--lab", action="store_true", help="what starts a virtual machine, and nothing else")
    parser.add_argument("documents", nargs="+")
    return parser.parse_args()


def blocks_of(path):
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    header = not path.endswith(".md")
    if header:  # blocks are in comments
        lines = [re.sub(r"^ ?(//|\*|/\*) ?", "", line) for line in lines]
    blocks, opened, before = [], None, ""
    for number, line in enumerate(lines, 1):
        fence = re.match(r"( *)```(.*)", line)
        if fence and opened is None:
            mark = re.fullmatch(r" *<!-- (not run|from|printed by|one node):? (.+) -->", before)
            opened = Block(number, fence[2].strip(), *(mark.groups() if mark else ("", "")), [])
            indent = len(fence[1])
        elif fence:
            blocks.append(opened)
            opened = None
        elif opened is not None:
            opened.lines.append(line[indent:])
        elif not header and re.match(r"    +\S", line) and not before.strip():
            raise Failure(f"{path}:{number}: an indented block: put it between fences that say what it is")
        before = line
    if opened is not None:
        raise Failure(f"{path}:{opened.line}: a block without an end")
    return blocks


def shape(line):
    """What a line stands for, as a regular expression."""
    result = ""
    for piece in PIECES.finditer(line.strip()):
        kind, text = piece.lastgroup, piece[0]
        result += {"rest": ".*", "hex": "0x[0-9a-f]+", "number": NUMBER, "blanks": r"\s+",
                   "unknown": f"(?:-|{NUMBER})"}.get(kind, "")
        if kind == "counted":
            result += NUMBER + r"\s+" + text.split()[1].removesuffix("s") + "s?"
        elif kind == "text":
            result += re.escape(text)
    return result


def expect_lines(expected, output, what):
    """All expected lines are in the output, in order."""
    printed = iter(output.split("\n"))
    for line in filter(str.strip, expected):
        if not any(re.fullmatch(shape(line), candidate.strip()) for candidate in printed):
            raise Failure(f"{what}: no such line, or not in this place: {line.strip()}\n--- it is:\n{output}")


def commands_of(block):
    """Commands with the lines that each is to print."""
    if block.kind == "sh":
        joined = "\n".join(block.lines).replace("\\\n", " ")
        return [(line, []) for line in joined.split("\n") if line.strip() and not line.lstrip().startswith("#")]
    commands = []
    for line in block.lines:
        if line.startswith("$ "):
            commands.append((line[2:], []))
        elif not commands:
            raise Failure("a console block begins with a command: $ …")
        else:
            commands[-1][1].append(line)
    return commands


class Documents:
    def __init__(self, options, scratch):
        self.options = options
        self.scratch = scratch
        self.lab_outputs = {}
        self.counts = collections.Counter()
        self.left_out = []
        self.environment = {name: value for name, value in os.environ.items()
                            if not re.match(r"(OMP|GOMP|KMP|BOSK)_|LD_PRELOAD$|LD_LIBRARY_PATH$|CTEST_", name)}
        self.environment.update(PATH=f"{options.build}/bin:{os.environ['PATH']}", CPATH=f"{options.source}/include",
                                LC_ALL="C.UTF-8")
        if not options.lab:  # the lab's kernels are in the cache
            self.environment.update(HOME=scratch, XDG_CACHE_HOME=f"{scratch}/cache")
        os.symlink(options.build, f"{scratch}/build")
        for name in os.listdir(self.own("scratch")):
            shutil.copy(self.own("scratch", name), scratch)

    def own(self, *names):
        return os.path.join(self.options.source, "tests", "docs", *names)

    def call(self, words, what=None):
        what = what or " ".join(words)
        with subprocess.Popen(words, cwd=self.scratch, env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True) as process:
            try:
                output = process.communicate(timeout=LIMIT)[0].decode(errors="replace")
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise Failure(f"{what}: takes longer than {LIMIT} s") from None
        if process.returncode != 0:
            raise Failure(f"{what}: status {process.returncode}\n--- it says:\n{output}")
        return output

    def compile_and_run(self, source, block_lines=()):
        with open(f"{self.scratch}/block.inc", "w", encoding="utf-8") as file:
            file.write("\n".join(block_lines) + "\n")
        cpp = source.endswith("cpp")
        library = f"{self.options.build}/lib"
        self.call([self.options.cxx if cpp else self.options.cc, "-std=gnu++17" if cpp else "-std=gnu11", "-O1", "-g",
                   "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-I", self.scratch, source, "-o", "fragment",
                   f"{library}/libgomp.so.1", f"-Wl,-rpath,{library}", "-fopenmp"], "compiling " + source)
        return self.call(["./fragment"], source)

    def fragment(self, document, block, number):
        ending = f"-{number}.{block.kind}"
        source = self.own(os.path.basename(document) + ending)
        if not os.path.exists(source):
            if not any(re.match(r"int main\(", line) for line in block.lines):
                raise Failure(f"a part of a program needs {source}")
            source = f"{self.scratch}/whole.{block.kind}"
            with open(source, "w", encoding="utf-8") as file:
                file.write("\n".join(block.lines) + "\n")
        elif '#include "block.inc"' not in open(source, encoding="utf-8").read():
            raise Failure(f"{source} does not include it")
        self.compile_and_run(source, block.lines)
        self.counts["compiled and run"] += 1

    def commands(self, block):
        for command, expected in commands_of(block):
            command = re.sub(r"\s{2,}# .*", "", command).strip()
            if re.search(r"(^|[ /])bosk lab ", command):
                if not self.options.lab:
                    self.counts["commands left to the test lab.docs"] += 1
                    continue
                command = command.replace("build/bin/bosk", "bosk")  # the same machine is booted once
                if command not in self.lab_outputs:
                    self.lab_outputs[command] = self.run_command(command)
                expect_lines(expected, self.lab_outputs[command], command)
            elif not self.options.lab:
                expect_lines(expected, self.run_command(command), command)

    def run_command(self, command):
        if not os.path.exists(f"{self.scratch}/app"):  # compiled as any other program: it knows nothing of bosk
            self.call([self.options.cc, "-O1", "-fopenmp", "app.c", "-o", "app"])
            for other in ("one", "other"):
                shutil.copy(f"{self.scratch}/app", f"{self.scratch}/{other}")
        print("  $", command, flush=True)
        self.counts["commands run"] += 1
        return self.call(["bash", "-c", command], command)

    def block(self, document, block, number):
        if block.kind not in KINDS:
            raise Failure(f"{block.kind!r} says nothing of what it is; one of {', '.join(KINDS)} does")
        if block.mark == "not run" or block.mark == "one node" and os.path.exists("/sys/devices/system/node/node1"):
            if not self.options.lab:
                self.counts["left out"] += 1
                self.left_out.append(f"{document}:{block.line}: {block.about}")
        elif block.mark == "from":
            with open(os.path.join(self.options.source, block.about), encoding="utf-8") as file:
                expect_lines(block.lines, file.read(), block.about)
            self.counts["found in the source"] += 1
        elif block.mark == "printed by":
            if not self.options.lab:
                expect_lines(block.lines, self.compile_and_run(os.path.join(self.options.source, block.about)),
                             block.about)
                self.counts["printed by a program"] += 1
        elif block.kind in ("sh", "console"):
            self.commands(block)
            self.counts["with commands"] += 1
        elif block.kind in ("c", "cpp"):
            if not self.options.lab:
                self.fragment(document, block, number)
        else:
            self.counts["pictures and forms"] += 1

    def document(self, document):
        blocks = blocks_of(os.path.join(self.options.source, document))
        numbers, number = [], 0
        for block in blocks:
            number += block.kind in ("c", "cpp") and not block.mark
            numbers.append(number)
            if block.kind in ("c", "cpp") and not block.mark:
                with open(f"{self.scratch}/block-{number}.inc", "w", encoding="utf-8") as file:
                    file.write("\n".join(block.lines) + "\n")
        failures = 0  # all are told
        for block, number in zip(blocks, numbers):
            try:
                self.block(document, block, number)
            except (Failure, OSError) as failure:
                print(f"{document}:{block.line}: {failure}")
                failures += 1
        print(f"{document}: {len(blocks)} blocks")
        return failures


def main():
    options = arguments()
    options.source, options.build = os.path.abspath(options.source), os.path.abspath(options.build)
    if options.lab and not shutil.which("qemu-system-x86_64"):
        print("docs: SKIPPED, there is no qemu-system-x86_64 here: apt-get install qemu-system-x86")
        return 77
    with tempfile.TemporaryDirectory(prefix="bosk-docs-") as scratch:
        try:
            documents = Documents(options, scratch)
            failures = sum(documents.document(document) for document in options.documents)
        except Failure as failure:
            print(failure)
            return 1
        print(", ".join(f"{count} {what}" for what, count in documents.counts.items()) or "nothing to run")
        for reason in documents.left_out:
            print("left out:", reason)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
