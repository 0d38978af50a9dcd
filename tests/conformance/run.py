#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the tests of GCC's own libgomp on the system's libgomp and on bosk, and compares. The tests are
taken from Debian's package gcc-N-source; none of them is part of bosk. See README.md in this folder.
Ends with 1 when a test that passes on libgomp fails on bosk and is not in exceptions.txt."""

import argparse
import json
import re
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import programs
import runs
import suite
import verdict

HERE = Path(__file__).resolve().parent
REPO = HERE.parent.parent


def parse_arguments(argv: list) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="REGEX",
                        help="only tests whose FOLDER/FILE matches one of these; default: all")
    parser.add_argument("--bosk", metavar="LIBDIR", type=Path, default=REPO / "build" / "lib",
                        help="folder with bosk's libgomp.so.1 (build/lib)")
    parser.add_argument("--place", metavar="DIR", type=Path, default=REPO / "build" / "conformance",
                        help="where the tests are unpacked and compiled (build/conformance)")
    parser.add_argument("--source", metavar="DIR", type=Path,
                        help="take GCC's source from there instead of Debian's package")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (2)")
    parser.add_argument("--timeout", type=float, default=40,
                        help="seconds for each run (40), more where a test asks for it")
    parser.add_argument("--env", metavar="NAME=VALUE", action="append", default=[],
                        help="set in every run, below what the test sets itself")
    parser.add_argument("--repeat", type=int, default=1, metavar="N",
                        help="run each test N times on bosk, until it fails (1)")
    parser.add_argument("--exceptions", metavar="FILE", type=Path, default=HERE / "exceptions.txt",
                        help="tests that may fail, with reasons (exceptions.txt)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all results to FILE")
    parser.add_argument("--list", action="store_true", help="print the names only")
    args = parser.parse_args(argv)
    if args.jobs < 1 or args.repeat < 1:
        parser.error("--jobs, --repeat: at least 1")
    if any("=" not in setting for setting in args.env):
        parser.error("--env: NAME=VALUE")
    args.settings = dict(setting.split("=", 1) for setting in args.env)
    try:
        args.chosen = re.compile("|".join("(?:%s)" % name for name in args.names))
    except re.error as error:
        parser.error("%s: %s" % (" ".join(args.names), error))
    args.bosk, args.place = args.bosk.resolve(), args.place.resolve()
    return args


def say(text: str):
    print("conformance: " + text, flush=True)


def in_parallel(what: str, work, items: list, jobs: int) -> list:
    """[work(item)] in the order of the items, saying every few seconds how far it is."""
    done, told = {}, time.monotonic()
    with ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(work, item): index for index, item in enumerate(items)}
        try:
            for future in as_completed(futures):
                done[futures[future]] = future.result()
                if time.monotonic() - told >= 15 or len(done) == len(items):
                    told = time.monotonic()
                    say("%s %d of %d" % (what, len(done), len(items)))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return [done[index] for index in range(len(items))]


class Session:
    """The settings that all runs share."""

    def __init__(self, args: argparse.Namespace, builder: programs.Builder):
        self.args, self.builder = args, builder

    def run(self, test: suite.Test, program: Path, library: Path = None) -> runs.Outcome:
        directives = test.directives
        settings = dict(self.args.settings)
        if test.openacc:
            settings["ACC_DEVICE_TYPE"] = "host"
        settings.update(directives.environment)
        seconds = max(self.args.timeout, directives.seconds or 0) * directives.time_factor
        return runs.run([str(program)], runs.environment(settings, library), seconds)

    def examine(self, entry: tuple) -> verdict.Result:
        test, program = entry
        if test.directives.skipped:
            return verdict.Result(test.name, test.folder, verdict.NOT_RUN, test.directives.skipped)
        if program.problem:
            return verdict.Result(test.name, test.folder, verdict.NOT_RUN, "does not compile",
                                  program.problem)
        if test.directives.action == "link":
            problem = self.builder.link(test, self.args.bosk)
            return verdict.Result(test.name, test.folder,
                                  verdict.STOCK_ONLY if problem else verdict.BOTH,
                                  "does not link" if problem else "", problem)
        stock = self.run(test, program.path)
        for _ in range(self.args.repeat):
            bosk = self.run(test, program.path, self.args.bosk)
            result = verdict.compare(test.name, test.folder, test.directives, stock, bosk)
            if result.kind != verdict.BOTH:
                break
        return result


def check_library(program: Path, library: Path):
    """The comparison is void when the programs do not run on the library that was named."""
    listing = subprocess.run(["ldd", str(program)], env=runs.environment({}, library), text=True,
                             capture_output=True, check=False).stdout
    if str(library) not in listing:
        raise suite.NoSuite("%s does not load libgomp.so.1 from %s" % (program, library))


def excuse(exceptions: dict, name: str):
    """The reason that is listed for the test, in its language or in any; None."""
    return exceptions.get(name) or exceptions.get(name.partition("@")[0])


def print_results(results: list, exceptions: dict) -> int:
    """Prints tables and lists; returns how many differences are not excused."""
    print()
    for line in verdict.table(results):
        print("  " + line)

    reasons = Counter(" ".join(result.why.split()) for result in results
                      if result.kind == verdict.NOT_RUN)
    if reasons:
        print("\nNot run")
        for why, count in reasons.most_common():
            print("  %4d  %s" % (count, why))

    unexcused = 0
    for kind, head in ((verdict.STOCK_ONLY, "Pass on libgomp, fail on bosk"),
                       (verdict.BOSK_ONLY, "Fail on libgomp, pass on bosk"),
                       (verdict.NEITHER, "Fail on both")):
        chosen = [result for result in results if result.kind == kind]
        if chosen:
            print("\n%s: %d" % (head, len(chosen)))
        for result in chosen:
            reason = excuse(exceptions, result.name)
            print("  %s: %s%s" % (result.name, result.why, "; " + result.note if result.note else ""))
            if result.line:
                print("      " + result.line[:160])
            if kind == verdict.STOCK_ONLY:
                if reason:
                    print("      listed: " + reason)
                else:
                    unexcused += 1
    by_load = [result for result in results if result.note.startswith("load")]
    if by_load:
        print("\nDifferent only beside other tests: %d" % len(by_load))
        for result in by_load:
            print("  %s: %s" % (result.name, result.note))

    passing = {result.name for result in results if result.kind == verdict.BOTH}
    for name in exceptions:
        if name in passing:
            print("\n%s is listed as an exception, but passes" % name)
    return unexcused


def write_json(file: Path, results: list):
    file.write_text(json.dumps([vars(result) for result in results], indent=1), encoding="utf-8")


def compare_all(args: argparse.Namespace) -> int:
    source = args.source.resolve() if args.source else suite.fetch(args.place, say)
    tests, unknown = suite.find(source, args.chosen)
    tests = [test for test in tests if test.directives.action in ("run", "link")]
    if args.list:
        for test in tests:
            print(test.name)
        return 0
    if not tests:
        raise suite.NoSuite("no test matches")
    if unknown:
        say("taken as 'no', since machine.py does not know them: " + " ".join(unknown))
    exceptions = verdict.read_exceptions(args.exceptions)
    if not (args.bosk / "libgomp.so.1").exists():
        raise suite.NoSuite("no libgomp.so.1 in %s; build it with ./dev build" % args.bosk)

    compiler = suite.run_or_fail(["gcc", "-dumpfullversion"]).strip()
    builder = programs.Builder(source, args.place / "programs", compiler + " " + suite.identity(source))
    runs.limit_this_process()
    wanted = [test for test in tests if not test.directives.skipped]
    built = dict(zip([test.name for test in wanted],
                     in_parallel("compiled", builder.build, wanted, args.jobs)))
    sample = next((program.path for program in built.values() if program.path), None)
    if sample is None:
        raise suite.NoSuite("nothing compiles: " + next(iter(built.values())).problem)
    check_library(sample, args.bosk)

    session = Session(args, builder)
    entries = [(test, built.get(test.name)) for test in tests]
    results = in_parallel("ran", session.examine, entries, args.jobs)
    for index, result in enumerate(results):
        if result.kind in (verdict.STOCK_ONLY, verdict.BOSK_ONLY):
            say("again, alone: %s (%s)" % (result.name, result.why))
            results[index] = verdict.after_second_run(result, session.examine(entries[index]))

    unexcused = print_results(results, exceptions)
    if args.json:
        write_json(args.json, results)
    print()
    say("%d differences that are not listed" % unexcused if unexcused else "no unlisted difference")
    return 1 if unexcused else 0


def main(argv: list) -> int:
    try:
        return compare_all(parse_arguments(argv))
    except (suite.NoSuite, ValueError) as error:
        print("conformance: %s" % error, file=sys.stderr)
        # EX_TEMPFAIL: who runs this beside other tests may go on without.
        return 75 if isinstance(error, suite.NoPackage) else 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
