# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the comparison itself: python3 -m unittest discover -s tests/conformance"""

import os
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import dejagnu
import programs
import run
import runs
import suite
import verdict
from machine import Machine

HERE = Machine("c", flags=frozenset(["sse2", "avx"]), processor="x86_64")
ACC = Machine("c++", openacc=True, flags=frozenset(), processor="x86_64")


def header(*lines, machine=HERE, flags=("-O2",)):
    return dejagnu.Reader(machine, list(flags)).read("\n".join(lines))


class Words(unittest.TestCase):
    def test_bare_quoted_and_braced_words(self):
        self.assertEqual(dejagnu.words_of('run { target a }  "x y" -O2'),
                         ["run", " target a ", "x y", "-O2"])

    def test_braces_nest_and_keep_what_is_in_them(self):
        self.assertEqual(dejagnu.words_of(r'{ a { b } "c" \n } d'), [r' a { b } "c" \n ', "d"])

    def test_backslashes_in_quotes_are_taken_as_tcl_does(self):
        self.assertEqual(dejagnu.words_of(r'"\\\[\[0-9\]+\n"'), ["\\[[0-9]+\n"])

    def test_what_is_left_open_is_no_list(self):
        for text in ("{ a", '"a'):
            with self.assertRaises(dejagnu.BadDirective):
                dejagnu.words_of(text)


class Selectors(unittest.TestCase):
    def check(self, expression, expected, machine=HERE):
        self.assertEqual(dejagnu.selected(expression, machine), expected, expression)

    def test_triplets(self):
        self.check("*-*-*", True)
        self.check("x86_64-*-*", True)
        self.check("i?86-*-* x86_64-*-*", True)
        self.check("powerpc*-*-*", False)
        self.check("*-*-linux* *-*-freebsd*", True)

    def test_names(self):
        self.check("lp64", True)
        self.check("openacc_host_selected", False)
        self.check("openacc_host_selected", True, ACC)
        self.check("avx_runtime", True)
        self.check("avx_runtime", False, ACC)
        self.check("c++", True, ACC)

    def test_operators(self):
        self.check("{ ! lp64 }", False)
        self.check("! ia32", True)
        self.check("{ { i?86-*-* x86_64-*-* } && lp64 }", True)
        self.check("{ { i?86-*-* x86_64-*-* } && ia32 }", False)
        self.check("ia32 || lp64", True)
        self.check("{ ! { ia32 || lp64 } }", False)
        self.check("ia32 && lp64 || lto", True)
        self.check("c && { ! __OPTIMIZE__ }", False)

    def test_unknown_names_do_not_hold_and_are_reported(self):
        machine = Machine("c", flags=frozenset(), processor="x86_64")
        self.assertFalse(dejagnu.selected("{ lp64 && never_heard_of }", machine))
        self.assertEqual(machine.unknown, {"never_heard_of"})

    def test_target_and_xfail(self):
        self.assertTrue(dejagnu.applies(" target lp64 ", HERE))
        self.assertFalse(dejagnu.applies(" target ia32 xfail *-*-* ", HERE))
        self.assertTrue(dejagnu.applies(" target { lp64 && lto } xfail ia32 ", HERE))
        self.assertTrue(dejagnu.applies(" xfail *-*-* ", HERE))
        self.assertFalse(dejagnu.applies("target ia32", HERE))


class Headers(unittest.TestCase):
    def test_nothing_said_means_run(self):
        found = header("int main (void) { return 0; }")
        self.assertEqual((found.action, found.skipped, found.options), ("run", "", None))

    def test_action(self):
        self.assertEqual(header("/* { dg-do compile } */").action, "compile")
        self.assertEqual(header("! { dg-do link { target lp64 } }").action, "link")
        self.assertIn("ia32", header("// { dg-do run { target ia32 } }").skipped)

    def test_an_action_for_other_targets_leaves_an_earlier_one(self):
        found = header("/* { dg-do run } */", "/* { dg-do link { target ia32 } } */")
        self.assertEqual((found.action, found.skipped), ("run", ""))
        found = header("/* { dg-do link { target ia32 } } */", "/* { dg-do run { target lp64 } } */")
        self.assertEqual((found.action, found.skipped), ("run", ""))

    def test_options(self):
        found = header('/* { dg-options "-O0 -g" } */',
                       '/* { dg-additional-options "-std=c99" { target c } } */',
                       '/* { dg-additional-options "-x1" {target c++ } } */',
                       "/* { dg-additional-options -lm } */")
        self.assertEqual(found.options, ["-O0", "-g"])
        self.assertEqual(found.more_options, ["-std=c99", "-lm"])

    def test_sources_and_environment(self):
        found = header('/* { dg-additional-sources "a.c b.c" } */',
                       '/* { dg-set-target-env-var OMP_NUM_THREADS "4" } */',
                       '! { dg-set-target-env-var OMP_PLACES "{6,7}:4:-2,!{2,3}" }')
        self.assertEqual(found.sources, ["a.c", "b.c"])
        self.assertEqual(found.environment,
                         {"OMP_NUM_THREADS": "4", "OMP_PLACES": "{6,7}:4:-2,!{2,3}"})

    def test_expected_failure_with_its_output(self):
        found = header('/* { dg-output "libgomp: a(\\n|\\r)" } */', '/* { dg-output "b.*" } */',
                       '/* { dg-output "c" { target ia32 } } */', '/* { dg-shouldfail "why" } */')
        self.assertTrue(found.should_fail)
        self.assertEqual(found.output, "libgomp: a(\n|\r)b.*")
        self.assertFalse(header('/* { dg-shouldfail "" { ia32 } } */').should_fail)

    def test_needs(self):
        self.assertEqual(header("/* { dg-require-effective-target tls } */").skipped, "")
        self.assertEqual(header("/* { dg-require-effective-target offload_device } */",
                                "/* { dg-do run } */").skipped, "needs offload_device")

    def test_skip_by_flags(self):
        host = ["-O2", "-DACC_MEM_SHARED=1"]
        skip = '/* { dg-skip-if "" { *-*-* } { "%s" } { "%s" } } */'
        self.assertFalse(header(skip % ("*", "-O2"), flags=host).skipped)
        self.assertTrue(header(skip % ("*", "-DACC_MEM_SHARED=0"), flags=host).skipped)
        self.assertTrue(header(skip % ("-DACC_MEM_SHARED=1", ""), flags=host).skipped)
        self.assertFalse(header(skip % ("-O0", ""), flags=host).skipped)
        self.assertTrue(header('/* { dg-skip-if "part of another" { *-*-* } } */').skipped)
        self.assertFalse(header('/* { dg-skip-if "" { ia32 } } */').skipped)
        # Options may come after it.
        self.assertTrue(header(skip % ("-O0", ""), '/* { dg-options "-O0" } */').skipped)

    def test_time(self):
        found = header("/* { dg-timeout 10 } */", "/* { dg-timeout-factor 2.0 } */")
        self.assertEqual((found.seconds, found.time_factor), (10, 2))

    def test_what_is_about_compiling_is_passed_over(self):
        found = header('int i; /* { dg-warning "x" "y" { target *-*-* } .-1 } */',
                       "/* { dg-final { scan-tree-dump { a } b } } */")
        self.assertEqual(found, dejagnu.Directives())


def outcome(status=0, output="", timed_out=False):
    return runs.Outcome(status, output, timed_out)


class Verdicts(unittest.TestCase):
    PLAIN = dejagnu.Directives()
    FAILS = dejagnu.Directives(should_fail=True, output="libgomp: no")

    def kind(self, directives, stock, bosk):
        return verdict.compare("a/b.c", "a", directives, stock, bosk).kind

    def test_plain(self):
        good, bad = outcome(0), outcome(-6)
        self.assertEqual(self.kind(self.PLAIN, good, good), verdict.BOTH)
        self.assertEqual(self.kind(self.PLAIN, good, bad), verdict.STOCK_ONLY)
        self.assertEqual(self.kind(self.PLAIN, bad, good), verdict.BOSK_ONLY)
        self.assertEqual(self.kind(self.PLAIN, bad, bad), verdict.NEITHER)
        self.assertEqual(self.kind(self.PLAIN, good, outcome(-9, timed_out=True)),
                         verdict.STOCK_ONLY)

    def test_output_counts(self):
        wants = dejagnu.Directives(output="yes")
        self.assertEqual(self.kind(wants, outcome(0, "yes"), outcome(0, "no")), verdict.STOCK_ONLY)
        lines = dejagnu.Directives(output="one.*three")
        self.assertEqual(self.kind(lines, outcome(0, "one\ntwo\nthree"), outcome(0, "one")),
                         verdict.STOCK_ONLY)

    def test_a_test_that_should_fail_fails_alike(self):
        stock = outcome(1, "\nlibgomp: no, at 0x7f00a\n")
        self.assertEqual(self.kind(self.FAILS, stock, outcome(1, "libgomp: no, at 0x55\nmore")),
                         verdict.BOTH)
        for other in (outcome(2, stock.output), outcome(-6, stock.output), outcome(0, stock.output),
                      outcome(1, "other line\nlibgomp: no, at 0x1"), outcome(1, "silence")):
            self.assertEqual(self.kind(self.FAILS, stock, other), verdict.STOCK_ONLY, other)

    def test_a_second_run_alone(self):
        def result(kind, timed_out=False, seconds=0.1):
            return verdict.Result("a/b.c", "a", kind, timed_out=timed_out, seconds=seconds)

        again = verdict.after_second_run(result(verdict.STOCK_ONLY), result(verdict.STOCK_ONLY))
        self.assertEqual(again.kind, verdict.STOCK_ONLY)
        limit = result(verdict.STOCK_ONLY, True, 40)
        load = verdict.after_second_run(limit, result(verdict.BOTH, seconds=9))
        self.assertEqual(load.kind, verdict.BOTH)
        self.assertTrue(load.note.startswith("load"))
        # A test that takes no time hung.
        hang = verdict.after_second_run(limit, result(verdict.BOTH, seconds=0.1))
        self.assertEqual(hang.kind, verdict.STOCK_ONLY)
        self.assertTrue(hang.note.startswith("flaky"))
        # A wrong result is no matter of load.
        flaky = verdict.after_second_run(result(verdict.STOCK_ONLY), result(verdict.BOTH))
        self.assertEqual(flaky.kind, verdict.STOCK_ONLY)
        self.assertTrue(flaky.note.startswith("flaky"))

    def test_table(self):
        results = [verdict.Result("a/1", "a", verdict.BOTH), verdict.Result("a/2", "a", verdict.NOT_RUN),
                   verdict.Result("b/1", "b", verdict.STOCK_ONLY)]
        lines = [line.split() for line in verdict.table(results)]
        self.assertEqual(lines[1], ["a", "2", "1", "0", "0", "0", "1"])
        self.assertEqual(lines[-1], ["all", "3", "1", "0", "1", "0", "1"])


class Exceptions(unittest.TestCase):
    def read(self, text):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "list"
            file.write_text(text, encoding="utf-8")
            return verdict.read_exceptions(file)

    def test_names_and_reasons(self):
        self.assertEqual(self.read("# why\n\nd/a.c: it: is so\nd/b.c@c++: other\n"),
                         {"d/a.c": "it: is so", "d/b.c@c++": "other"})

    def test_no_exception_without_a_reason(self):
        for text in ("d/a.c\n", "d/a.c:\n", "d/a.c: \n"):
            with self.assertRaises(ValueError):
                self.read(text)

    def test_our_own_list_can_be_read(self):
        verdict.read_exceptions(Path(verdict.__file__).with_name("exceptions.txt"))

    def test_one_entry_serves_both_languages(self):
        listed = {"d/a.c": "both", "d/b.c@c++": "one"}
        self.assertEqual(run.excuse(listed, "d/a.c@c++"), "both")
        self.assertEqual(run.excuse(listed, "d/b.c@c++"), "one")
        self.assertIsNone(run.excuse(listed, "d/b.c"))


class Running(unittest.TestCase):
    def test_status_output_and_signal(self):
        env = runs.environment({})
        found = runs.run(["sh", "-c", "echo out; echo err >&2; exit 3"], env, 20)
        self.assertEqual((found.end(), found.output), ("exit 3", "out\nerr\n"))
        self.assertEqual(runs.run(["sh", "-c", "kill -SEGV $$"], env, 20).end(), "SIGSEGV")

    def test_the_time_limit_ends_the_whole_group(self):
        with tempfile.TemporaryDirectory() as folder:
            mark = Path(folder) / "pid"
            found = runs.run(["sh", "-c", "sleep 300 & echo $! > %s; wait" % mark],
                             runs.environment({}), 1)
            self.assertTrue(found.timed_out)
            self.assertEqual(found.end(), "time limit")
            child = int(mark.read_text(encoding="ascii"))
            # Killed at once; it may take until its new parent has noticed.
            for _ in range(1000):
                if not alive(child):
                    break
                time.sleep(0.01)
            self.assertFalse(alive(child))

    def test_the_callers_settings_do_not_reach_the_program(self):
        os.environ.update(OMP_NUM_THREADS="77", BOSK_WORKERS="7")
        try:
            env = runs.environment({"OMP_DYNAMIC": "false"}, Path("/some/lib"))
        finally:
            del os.environ["OMP_NUM_THREADS"], os.environ["BOSK_WORKERS"]
        self.assertNotIn("OMP_NUM_THREADS", env)
        self.assertNotIn("BOSK_WORKERS", env)
        self.assertEqual((env["OMP_DYNAMIC"], env["LD_LIBRARY_PATH"]), ("false", "/some/lib"))


def alive(process):
    try:
        state = Path("/proc/%d/stat" % process).read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


class Suite(unittest.TestCase):
    """On a suite of three files."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        root = Path(self.folder.name) / "libgomp" / "testsuite"
        self.write(root / "libgomp.c" / "plain.c", "int main (void) { return 0; }\n")
        self.write(root / "libgomp.c-c++-common" / "common.c",
                   '/* { dg-options "-O0" } */\nint main () { return 0; }\n')
        self.write(root / "libgomp.oacc-c-c++-common" / "acc.c",
                   '/* { dg-options "-g" } */\nint main () { return 0; }\n')

    @staticmethod
    def write(file, text):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="ascii")

    def find(self, pattern=""):
        tests, _ = suite.find(Path(self.folder.name), run.re.compile(pattern))
        return {test.name: test for test in tests}

    def test_common_files_come_once_per_language(self):
        self.assertEqual(list(self.find()), [
            "libgomp.c/plain.c", "libgomp.c-c++-common/common.c",
            "libgomp.c-c++-common/common.c@c++", "libgomp.oacc-c-c++-common/acc.c",
            "libgomp.oacc-c-c++-common/acc.c@c++"])
        self.assertEqual(list(self.find("plain|zzz")), ["libgomp.c/plain.c"])

    def test_default_options(self):
        tests = self.find()
        self.assertEqual(tests["libgomp.c/plain.c"].flags, ["-fopenmp", "-O2"])
        self.assertEqual(tests["libgomp.c-c++-common/common.c"].flags, ["-fopenmp", "-O0"])
        self.assertEqual(tests["libgomp.oacc-c-c++-common/acc.c"].flags[-2:], ["-O2", "-g"])

    def test_programs_are_kept_until_the_command_changes(self):
        place = Path(self.folder.name) / "programs"
        test = self.find("plain")["libgomp.c/plain.c"]
        first = programs.Builder(Path(self.folder.name), place, "1").build(test)
        self.assertEqual(first.problem, "")
        made = first.path.stat().st_mtime_ns
        programs.Builder(Path(self.folder.name), place, "1").build(test)
        self.assertEqual(first.path.stat().st_mtime_ns, made)
        programs.Builder(Path(self.folder.name), place, "2").build(test)
        self.assertNotEqual(first.path.stat().st_mtime_ns, made)

    def test_what_does_not_compile_says_so(self):
        file = Path(self.folder.name) / "libgomp" / "testsuite" / "libgomp.c" / "bad.c"
        self.write(file, "int main (void) { return nothing; }\n")
        builder = programs.Builder(Path(self.folder.name), Path(self.folder.name) / "programs", "1")
        problem = builder.build(self.find("bad")["libgomp.c/bad.c"]).problem
        self.assertIn("nothing", problem)

    def test_no_suite(self):
        with self.assertRaises(suite.NoSuite):
            suite.find(Path(self.folder.name) / "programs", run.re.compile(""))


if __name__ == "__main__":
    unittest.main()
