# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the harness itself (not of any speed): python3 -m unittest discover bench"""

import argparse
import os
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import apps
import lanes
import report
import rows
import run


class Statistics(unittest.TestCase):
    def test_median_and_middle_half(self):
        summary = report.summarise([1, 100, 2, 3, 4])
        self.assertEqual((summary["low"], summary["median"], summary["high"]), (2, 3, 4))

    def test_few_values_give_the_range(self):
        summary = report.summarise([5, 1, 3])
        self.assertEqual((summary["low"], summary["median"], summary["high"]), (1, 3, 5))


class Applications(unittest.TestCase):
    def test_the_interval_holds_the_ratio(self):
        ratio, low, high = apps.ratio_interval([2.0, 2.1, 1.9, 2.0, 2.2], [1.0, 1.0, 1.1, 0.9, 1.0])
        self.assertEqual(ratio, 2)
        self.assertTrue(low <= ratio <= high)
        self.assertEqual(apps.ratio_interval([3.0], [2.0]), (1.5, 1.5, 1.5))

    def test_wall_time_is_well_where_no_difference_is_seen(self):
        self.assertEqual(apps.is_well((1.02, 0.97, 1.2), (1, 1, 1)), (True, True))
        self.assertEqual(apps.is_well((1.03, 1.01, 1.05), (1, 1, 1)), (True, True))
        self.assertEqual(apps.is_well((1.03, 1.01, 1.06), (1, 1, 1)), (False, True))

    def test_cpu_time_may_be_what_wall_time_has_gained(self):
        self.assertEqual(apps.is_well((1, 1, 1), (1.11, 1.05, 1.2)), (True, False))
        self.assertEqual(apps.is_well((0.5, 0.4, 0.6), (1.9, 1.8, 2)), (True, True))
        self.assertEqual(apps.is_well((0.5, 0.4, 0.6), (2.1, 2.05, 2.2)), (True, False))

    def test_what_is_asked_for_must_be_there(self):
        for wrong in (["nothing"], ["-t", "2,x"], ["-t", "0"], ["-n", "0"]):
            with self.assertRaises(SystemExit):
                apps.parse_arguments(wrong)
        self.assertEqual(apps.parse_arguments(["dgemm", "-t", "2,4"]).threads, [2, 4])

    def test_alkanes_have_their_hydrogens(self):
        lines = apps.alkane(5).splitlines()
        self.assertEqual(int(lines[0]), len(lines) - 2)
        self.assertEqual(sum(line.startswith("H") for line in lines[2:]), 12)

    def test_a_program_that_hangs_is_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(TimeoutError):
                apps.run_once(["sleep", "60"], [], dict(os.environ), Path(folder), ".*", 0.2)
            run = apps.run_once(["echo", "answer 42"], [], dict(os.environ), Path(folder), r"answer \d+", 10)
        self.assertEqual(run.result, "answer 42")


class Verdicts(unittest.TestCase):
    def check(self, target, medians, text):
        self.assertEqual(report.verdict(report.judge(target, medians)), text)

    def test_at_most(self):
        self.check(rows.at_most(0.1), {"bosk": 0.1}, "reached")
        self.check(rows.at_most(0.1), {"bosk": 0.15}, "short by 1.50×")

    def test_at_most_nothing(self):
        self.check(rows.at_most(0), {"bosk": 0}, "reached")
        self.check(rows.at_most(0), {"bosk": 64}, "short")

    def test_at_least(self):
        self.check(rows.at_least(1.8), {"bosk": 1.9}, "reached")
        self.check(rows.at_least(1.8), {"bosk": 0.9}, "short by 2.00×")

    def test_times(self):
        self.check(rows.times("libgomp", 150), {"bosk": 0.1, "libgomp": 20}, "reached")
        self.check(rows.times("libgomp", 150), {"bosk": 0.1, "libgomp": 10}, "short by 1.50×")

    def test_within(self):
        self.check(rows.within("libgomp", 1.2), {"bosk": 12, "libgomp": 10}, "reached")
        self.check(rows.within("libgomp", 1.2), {"bosk": 24, "libgomp": 10}, "short by 2.00×")

    def test_plus(self):
        self.check(rows.plus("libgomp", 0.5), {"bosk": 1.1, "libgomp": 0.7}, "reached")
        self.check(rows.plus("libgomp", 0.5), {"bosk": 2.4, "libgomp": 0.7}, "short by 2.00×")

    def test_missing_figures_are_not_judged(self):
        self.check(rows.at_most(1), {"libgomp": 1}, "not judged")
        self.check(rows.times("libgomp", 2), {"bosk": 1}, "not judged")

    def test_better_means_better_in_both_directions(self):
        row = {"lanes": {"bosk": {"median": 2.0}, "libgomp": {"median": 8.0}}}
        self.assertEqual(report.better({**row, "higher_is_better": False}, "libgomp"), "4×")
        self.assertEqual(report.better({**row, "higher_is_better": True}, "libgomp"), "0.25×")


class Rows(unittest.TestCase):
    def test_names_are_unique_and_programs_exist(self):
        every = rows.all_rows()
        names = [row.name for row in every]
        self.assertEqual(len(names), len(set(names)))
        for row in every:
            for source in row.sources.values():
                self.assertIn(source.program,
                              {*lanes.PROGRAMS, "bosk-bench-switch", "bosk-bench-policies",
                               "bosk-bench-next_touch", "bosk-bench-migration",
                               "bosk-bench-memory_manager"})
            for name in row.derived[0] if row.derived else ():
                self.assertLess(names.index(name), names.index(row.name))

    def test_sources_of_programs_exist(self):
        for source, _, _ in lanes.PROGRAMS.values():
            self.assertTrue((lanes.PROGRAMS_DIR / source).is_file(), source)

    def test_derived_rows_bring_what_they_need(self):
        chosen = {row.name for row in run.choose_rows(["nested-tls-extra-8"])}
        self.assertEqual(chosen, {"nested-tls-extra-8", "nested-tls-8", "nested-8"})

    def test_unknown_name(self):
        with self.assertRaises(lanes.BenchError):
            run.choose_rows(["nosuch"])


class Scripts:
    """Stands for the compiled programs: shell scripts that print what a test wants."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def add(self, name, text):
        path = self.folder / name
        path.write_text("#!/bin/sh\n" + text, encoding="utf-8")
        path.chmod(0o755)

    def path(self, program, lane):
        return self.folder / f"{lane.name}-{program}"


class Processes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.scripts = Scripts(folder.name)
        self.source = rows.Source("p", ("a",), (("OMP_WAIT_POLICY", "passive"),), "a")

    def run_script(self, text, timeout=20):
        self.scripts.add("peer-p", text)
        lane = lanes.Lane("peer", "openmp", libdir="/some/where")
        return lanes.run_source(self.scripts, lane, self.source, {"EXTRA": "7"}, timeout)

    def test_values_environment_and_messages(self):
        os.environ["OMP_NUM_THREADS"] = "3"
        self.addCleanup(os.environ.pop, "OMP_NUM_THREADS")
        values, messages = self.run_script(
            'echo "$1 $EXTRA ns"; echo "$OMP_WAIT_POLICY $LD_LIBRARY_PATH" >&2\n'
            'test -z "$OMP_NUM_THREADS"\n')
        self.assertEqual(values, {"a": (7.0, "ns")})
        self.assertEqual(messages, ["passive /some/where"])

    def test_failure_names_status_and_message(self):
        with self.assertRaisesRegex(lanes.BenchError, "p a: exit 3: broken"):
            self.run_script("echo broken >&2; exit 3")

    def test_signal(self):
        with self.assertRaisesRegex(lanes.BenchError, "signal 11"):
            self.run_script("kill -SEGV $$")

    def test_unreadable_line(self):
        with self.assertRaisesRegex(lanes.BenchError, "cannot read the line 'a fast ns'"):
            self.run_script("echo a fast ns")

    def test_timeout_ends_the_grandchildren_too(self):
        pid_file = self.scripts.folder / "pid"
        with self.assertRaisesRegex(lanes.BenchError, "not finished"):
            self.run_script(f"sleep 60 & echo $! > {pid_file}; wait", timeout=1)
        pid = int(pid_file.read_text(encoding="ascii"))
        end = time.monotonic() + 10
        while self.runs(pid) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertFalse(self.runs(pid))

    @staticmethod
    def runs(pid):
        try:  # a zombie that nobody reaped yet has ended
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
        except OSError:
            return False
        return stat.rsplit(")", 1)[1].split()[0] != "Z"


class Rounds(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.scripts = Scripts(folder.name)
        self.log = self.scripts.folder / "log"

    def measure(self, the_rows, names, runs):
        args = argparse.Namespace(quick=True, runs=runs, env=[], timeout=20)
        progress = run.Progress()
        progress.rewrite, progress.say = False, lambda text: None
        every = [lanes.Lane(name, "openmp") for name in names]
        measurement = run.Measurement(args, self.scripts, the_rows, every, progress)
        measurement.run()
        return measurement

    def test_runtimes_take_turns_and_derived_rows_follow(self):
        for name, value in (("bosk", 2), ("libgomp", 8)):
            self.scripts.add(f"{name}-p", f"echo {name} >> {self.log}; echo a {value} ns")
        plain = rows.Row("g", "plain", "ns", rows.openmp("p", "a"), [rows.times("libgomp", 4)])
        double = rows.Row("g", "double", "ns", {}, [], derived=(("plain",), lambda v: 2 * v))
        measurement = self.measure([plain, double], ["bosk", "libgomp"], 3)
        self.assertEqual(self.log.read_text(encoding="ascii").split(),
                         ["bosk", "libgomp", "libgomp", "bosk", "bosk", "libgomp"])
        first, second = measurement.results(True)
        self.assertEqual(first["lanes"]["libgomp"]["values"], [8, 8, 8])
        self.assertTrue(first["targets"][0]["reached"])
        self.assertEqual(second["lanes"]["bosk"]["values"], [4, 4, 4])
        self.assertNotIn("libgomp", second["lanes"])
        self.assertIsNone(measurement.results(False)[0]["targets"][0]["reached"])

    def test_a_failure_is_reported_and_not_tried_again(self):
        self.scripts.add("bosk-p", f"echo bosk >> {self.log}; exit 1")
        row = rows.Row("g", "plain", "ns", rows.openmp("p", "a"))
        measurement = self.measure([row], ["bosk"], 3)
        self.assertEqual(self.log.read_text(encoding="ascii").split(), ["bosk"])
        self.assertIn("exit 1", measurement.results(True)[0]["lanes"]["bosk"]["failure"])

    def test_a_wrong_unit_is_a_failure(self):
        self.scripts.add("bosk-p", "echo a 1 us")
        row = rows.Row("g", "plain", "ns", rows.openmp("p", "a"))
        measurement = self.measure([row], ["bosk"], 1)
        self.assertIn("expected ns", measurement.failures["plain", "bosk"])

    def test_a_rate_is_a_unit_as_it_stands(self):
        self.scripts.add("bosk-p", "echo a 1 MB/s")
        row = rows.Row("g", "plain", "MB/s", rows.openmp("p", "a"))
        measurement = self.measure([row], ["bosk"], 1)
        self.assertEqual(measurement.failures, {})

    def test_what_the_internal_program_leaves_out_is_a_failure(self):
        self.scripts.add("bosk internals-p", "echo other 1 ns")
        source = {"internal": rows.Source("p", (), (), "wanted")}
        the_rows = [rows.Row("g", "time", "ns", source), rows.Row("g", "ticks", "cycles", source)]
        args = argparse.Namespace(quick=True, runs=1, env=[], timeout=20)
        progress = run.Progress()
        progress.rewrite, progress.say = False, lambda text: None
        lane = lanes.Lane("bosk internals", "internal")
        measurement = run.Measurement(args, self.scripts, the_rows, [lane], progress)
        measurement.run()
        self.assertEqual(list(measurement.failures), [("time", "bosk")])
        self.assertEqual(measurement.values["other"], {"bosk": [1.0]})


if __name__ == "__main__":
    unittest.main()
