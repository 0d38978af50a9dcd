# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of `./dev bench papers` itself (not of any speed): python3 -m unittest discover bench"""

import argparse
import contextlib
import csv
import io
import json
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import lanes
from papers import __main__ as command
from papers import locality, machine, measure, output, published, svg, tables
from papers.model import Cell, Derived, Figure, Machine, Panel, Table
from rows import Source

OPTERON = Machine(16, (4, 4, 4, 4), 32768, "Opteron", "2.6.27")
ONE_NODE = Machine(2, (2,), 4096, "one node", "6.1")
# Bosk has no counterpart to it.
ONLY_PUBLISHED = "Marcel without bubbles"


def source(program: str, output_name: str) -> Source:
    return Source(program, (), (), output_name)


class Published(unittest.TestCase):
    def test_belongs_to_tables_that_there_are(self):
        names = {table.name for table in tables.TABLES}
        self.assertLessEqual(set(published.VALUES) | set(published.TEXT), names)
        self.assertEqual({table.paper for table in tables.TABLES}, set(published.PAPERS))
        for name in names:
            self.assertTrue(published.VALUES.get(name) or published.TEXT.get(name), name)

    def test_stands_beside_a_cell_of_the_same_unit(self):
        for table in tables.TABLES:
            ours = {cell.key: cell.unit for cell in table.cells(OPTERON, False)}
            for key, value in published.VALUES.get(table.name, {}).items():
                if key[0] == ONLY_PUBLISHED:
                    continue
                self.assertEqual(ours.get(key), value.unit, (table.name, key))
                self.assertGreater(value.value, 0)

    def test_the_best_pass_is_no_worse_than_the_worst(self):
        for name in ("2009-table-4", "2009-table-5"):
            values = published.VALUES[name]
            for (row, column), worst in values.items():
                if column.endswith("worst"):
                    self.assertLess(worst.value, values[row, column.replace("worst", "best")].value)

    def test_numbers_of_the_papers(self):
        self.assertEqual(published.VALUES["2005-table-1"]["kernel", "switch"].value, 3930)
        self.assertEqual(published.VALUES["2009-table-1"]["threads of all nodes", "local"].value, 14540)
        self.assertEqual(published.VALUES["2009-table-5"]["bosk", "triad, best"].value, 9217)
        share = published.VALUES["2005-table-2"]["advection", "simple, of the CPUs"].value
        self.assertAlmostEqual(share, 56.9375)


class Tables(unittest.TestCase):
    def test_cells_have_names_of_their_own_and_programs_that_exist(self):
        for table in tables.TABLES:
            for here in (OPTERON, ONE_NODE):
                for quick in (True, False):
                    self.check_cells(table, table.cells(here, quick))

    def check_cells(self, table, cells):
        keys = [cell.key for cell in cells]
        self.assertEqual(len(keys), len(set(keys)), table.name)
        for cell in cells:
            self.assertNotEqual(cell.source is None, cell.derived is None)
            if cell.derived:
                for key in cell.derived.of:
                    self.assertLess(keys.index(key), keys.index(cell.key))
            elif cell.lane not in ("internal", "topo"):
                self.assertIn(cell.source.program, lanes.PROGRAMS)

    def test_panels_show_rows_that_there_are(self):
        for table in tables.TABLES:
            if table.figure:
                cells = table.cells(OPTERON, False)
                rows = {cell.row for cell in cells if cell.column.isdigit()}
                for panel in table.figure.panels(cells):
                    self.assertLessEqual({row for _, row in panel.series}, rows, table.name)

    def test_two_cpus_do_not_get_more_than_twice_as_many_threads(self):
        for name in ("2007-figure-4", "2007-figure-5"):
            cells = tables.choose([name])[0].cells(ONE_NODE, False)
            self.assertEqual(max(int(cell.column) for cell in cells if cell.column.isdigit()), 4)

    def test_are_chosen_by_name_pattern_and_paper(self):
        self.assertEqual([table.name for table in tables.choose(["goglin-lu"])], ["goglin-lu"])
        self.assertEqual({table.paper for table in tables.choose(["2005", "2007*"])}, {"2005", "2007"})
        self.assertEqual(len(tables.choose([])), len(tables.TABLES))

    def test_a_bad_name_is_named(self):
        with self.assertRaisesRegex(tables.UnknownTable, "'2009-table-7'.*2009-table-6"):
            tables.choose(["2005", "2009-table-7"])

    def test_calls_of_fibonacci(self):
        from papers import bubbles
        self.assertEqual([bubbles.calls(n) for n in (1, 2, 5)], [1, 3, 15])
        self.assertEqual(bubbles.powers(6), [1, 2, 4])


class Machines(unittest.TestCase):
    def test_lists_of_numbers(self):
        self.assertEqual(machine.numbers("0-3,8\n"), [0, 1, 2, 3, 8])
        self.assertEqual(machine.numbers("\n"), [])

    def test_nodes_count_by_the_cpus_that_we_may_use(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "has_memory").write_text("0-2\n", encoding="ascii")
            for node, cpus in enumerate(("0-3", "4-7", "8-11")):
                (folder / f"node{node}").mkdir()
                (folder / f"node{node}" / "cpulist").write_text(cpus + "\n", encoding="ascii")
            self.assertEqual(machine.cpus_by_node(folder, {0, 1, 4}), (2, 1))
            self.assertEqual(machine.cpus_by_node(folder / "nosuch", {0, 1, 4}), (3,))

    def test_words(self):
        self.assertIn("2 CPUs on 1 NUMA node,", machine.in_words(ONE_NODE))
        self.assertIn("times mean nothing", machine.in_words(Machine(2, (2,), 1, "x", "y", True)))


class Measuring(unittest.TestCase):
    def setUp(self):
        self.ran = []
        self.cells = [Cell("r", "a", "ms", source("one", "a")), Cell("r", "b", "ms", source("two", "b"), "libgomp"),
                      Cell("r", "quotient", "x", derived=Derived((("r", "a"), ("r", "b")), lambda a, b: a / b))]

    def measure(self, printed, rounds):
        def run(process):
            self.ran.append(process[1])
            answer = printed[process[1]]
            if isinstance(answer, Exception):
                raise answer
            return answer

        measurement = measure.Measurement(self.cells, run, lambda text: None)
        for number in range(rounds):
            measurement.round(number, rounds)
        return measurement

    def test_rounds_take_turns_and_derived_cells_follow(self):
        measurement = self.measure({"one": {"a": (6, "ms")}, "two": {"b": (2, "ms")}}, 3)
        self.assertEqual(self.ran, ["one", "two", "two", "one", "one", "two"])
        self.assertEqual(measurement.figures["r", "quotient"].values, [3, 3, 3])
        self.assertEqual(measurement.failures(), [])

    def test_a_failure_is_told_and_not_tried_again(self):
        measurement = self.measure({"one": lanes.BenchError("one: exit 1"), "two": {"b": (2, "ms")}}, 2)
        self.assertEqual(self.ran, ["one", "two", "two"])
        self.assertEqual(measurement.failures(), ["one: exit 1"])
        self.assertEqual(measurement.figures["r", "b"].values, [2, 2])
        self.assertEqual(measurement.figures["r", "quotient"].values, [])

    def test_another_unit_and_a_missing_line_are_failures(self):
        measurement = self.measure({"one": {"a": (6, "us")}, "two": {"c": (2, "ms")}}, 1)
        self.assertEqual(measurement.failures(), ["one printed a in us, expected ms", "two did not print 'b'"])

    def test_what_may_be_missing_is_no_failure(self):
        self.cells = [Cell("r", "a", "cycles", source("one", "a"), optional=True)]
        measurement = self.measure({"one": {}}, 1)
        self.assertEqual(measurement.failures(), [])
        self.assertEqual(output.lines_of(tables.TABLES[-1], measurement), [])

    def test_latencies_by_distance(self):
        def one(to, way, value, source="measured"):
            return {"from": 0, "to": to, "way": way, "load": "alone", "latency_ns": {"value": value, "source": source}}

        every = [one(to, way, 80 + to * 10) for way in ("read", "write") for to in range(3)]
        every.append({**one(1, "read", 1), "load": "machine"})
        found = measure.latencies(json.dumps({"costs": {"access": every}}))
        self.assertEqual(found["read local"], (80, "ns"))
        self.assertEqual((found["read nearest node"], found["write farthest node"]), ((90, "ns"), (100, "ns")))
        with self.assertRaisesRegex(lanes.BenchError, "could not measure"):
            measure.latencies(json.dumps({"costs": {"access": [one(0, "read", 80, "assumed")]}}))


def measured(values):
    """A table of a figure, with these values of its one series at 1, 2, 4 and one cell beside it."""
    cells = [Cell("ours & <theirs>", column, "MB/s", source("p", column)) for column in ("1", "2", "4")]
    cells.append(Cell("best", "of all", "MB/s", source("p", "best")))
    figure = Figure("pages", "MB/s", lambda _: [Panel("a panel", (("ours & <theirs>", "ours & <theirs>"),))])
    table = Table("goglin-made-up", "made up", "nothing", lambda *_: cells, figure=figure, about="what ours is")
    measurement = measure.Measurement(cells, lambda _: {}, lambda _: None)
    for key, figures in measurement.figures.items():
        figures.values = list(values.get(key[1], []))
    return table, measurement


class Output(unittest.TestCase):
    def setUp(self):
        self.table, self.measurement = measured({"1": [1, 3, 2], "2": [20], "best": [], "of all": [400]})
        self.measurement.figures["ours & <theirs>", "4"].failure = "p: exit 3"
        values = {("ours & <theirs>", "2"): published.Value(10, "MB/s", "of a plot"), ("best", "of all"): published.Value(
            100, "MB/s", compares=False), ("theirs", "9"): published.Value(7, "MB/s")}
        published.VALUES[self.table.name] = values
        self.addCleanup(published.VALUES.pop, self.table.name)

    def test_text_has_medians_published_values_and_quotients(self):
        text = output.table_text(self.table, self.measurement, "one node: a reason")
        lines = [line.split() for line in text.splitlines()]
        self.assertIn("one node: a reason", text)
        self.assertIn(["row", "ours", "&", "<theirs>"], lines)
        self.assertIn(["1", "2", "[1–3]"], lines)
        self.assertIn(["4", "FAILED"], lines)
        self.assertIn("ours & <theirs>  2       MB/s  20                      10 (of a plot)  2", text)
        self.assertIn("FAILED p: exit 3", text)
        best = next(line for line in lines if line[:3] == ["best", "of", "all"])
        self.assertEqual(best[3:], ["MB/s", "400", "100"])
        theirs = next(line for line in lines if line[0] == "theirs")
        self.assertEqual(theirs, ["theirs", "9", "MB/s", "-", "7"])

    def test_a_long_axis_goes_down(self):
        values = measure.Figures([1])
        lines = [output.Line("row", str(x), "ms", values, None) for x in range(20)]
        self.assertEqual([line.split() for line in output.across(lines)][:3], [["row", "row"], ["unit", "ms"], ["0", "1"]])
        self.assertEqual(output.across(lines[:2])[1].split(), ["row", "ms", "1", "1"])

    def test_csv_can_be_read(self):
        rows = list(csv.DictReader(io.StringIO(output.table_csv(self.table, self.measurement))))
        self.assertEqual([row["column"] for row in rows], ["1", "2", "4", "of all", "9"])
        self.assertEqual((rows[0]["median"], rows[0]["min"], rows[0]["max"], rows[0]["rounds"]), ("2", "1", "3", "3"))
        self.assertEqual((rows[1]["published"], rows[1]["ours/published"]), ("10", "2"))
        self.assertEqual((rows[2]["median"], rows[2]["failure"]), ("", "p: exit 3"))
        self.assertEqual((rows[3]["published"], rows[3]["ours/published"]), ("100", ""))
        self.assertEqual((rows[4]["median"], rows[4]["published"]), ("", "7"))

    def test_svg_is_well_formed_and_shows_what_was_measured(self):
        drawn = xml.fromstring(output.figure_svg(self.table, "a machine", self.measurement, "a reason"))
        space = "{http://www.w3.org/2000/svg}"
        words = [text.text for text in drawn.iter(f"{space}text")]
        self.assertIn("ours & <theirs>", words)
        self.assertIn("a reason", words)
        lines = list(drawn.iter(f"{space}polyline"))
        self.assertEqual(len(lines), 1)
        self.assertEqual(len(lines[0].get("points").split()), 2)  # the third one has failed
        dashed = [circle for circle in drawn.iter(f"{space}circle") if circle.get("stroke-dasharray")]
        self.assertEqual(len(dashed), 1)

    def test_svg_without_any_point(self):
        table, measurement = measured({})
        words = [text.text for text in xml.fromstring(output.figure_svg(table, "m", measurement, "")).iter()]
        self.assertIn("nothing was measured", words)

    def test_ticks_are_within_the_values(self):
        for values, log in (([1, 64], True), ([0.3, 7], False), ([-20, 110], False), ([5, 5], False), ([3, 3], True)):
            scale = svg.Scale(values, log, 0, 100)
            self.assertTrue(1 <= len(scale.ticks()) <= 9, (values, scale.ticks()))
            for tick in scale.ticks():
                self.assertTrue(-1e-6 <= scale.at(tick) <= 100 + 1e-6, (values, tick))

    def test_long_lines_are_wrapped(self):
        self.assertEqual(svg.wrapped("one two three", 7), ["one two", "three"])


class Commands(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def call(self, *words):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = command.main(list(words))
        return status, out.getvalue(), err.getvalue()

    def test_a_bad_name_is_one_line_and_status_2(self):
        status, out, err = self.call("2006-table-1", "--quick")
        self.assertEqual((status, out), (2, ""))
        self.assertEqual(len(err.splitlines()), 1)
        self.assertIn("'2006-table-1'", err)
        self.assertIn("2005-table-1", err)

    def test_no_library_is_one_line_and_status_2(self):
        status, _, err = self.call("2005", "--build", str(self.folder), "--out", str(self.folder / "out"))
        self.assertEqual(status, 2)
        self.assertIn(f"there is no {self.folder}/lib/libgomp.so.1: ./dev build makes it", err.splitlines()[-1])
        self.assertFalse((self.folder / "out").exists())

    def test_a_folder_that_cannot_be_written_is_refused(self):
        (self.folder / "file").write_text("", encoding="ascii")
        with self.assertRaisesRegex(command.Refusal, "--out"):
            command.Writer(self.folder / "file" / "out", "tables.txt")

    def test_wrong_numbers_are_refused(self):
        for words in (["--runs", "0"], ["--timeout", "-1"]):
            with self.assertRaises(SystemExit) as stopped, contextlib.redirect_stderr(io.StringIO()):
                command.parse_arguments(words)
            self.assertEqual(stopped.exception.code, 2)

    def test_the_list_has_all_tables_and_what_they_need(self):
        status, out, _ = self.call("--list")
        self.assertEqual(status, 0)
        self.assertEqual([line.split()[0] for line in out.splitlines()], [table.name for table in tables.TABLES])
        self.assertTrue(all("needs: " in line for line in out.splitlines()))

    def test_one_node_measures_nothing_that_needs_more_and_says_so(self):
        table = tables.choose(["2009-figure-2"])[0]
        args = argparse.Namespace(quick=True, runs=1)
        progress = command.Progress()
        writer = command.Writer(self.folder, "tables.txt")
        with contextlib.redirect_stdout(io.StringIO()):
            # Without a setting to run anything in.
            self.assertTrue(command.do_native(table, ONE_NODE, None, args, writer, progress))
        text = (self.folder / "tables.txt").read_text(encoding="utf-8")
        self.assertIn("one NUMA node: nothing can be remote here", text)
        self.assertFalse((self.folder / "2009-figure-2.svg").exists())
        self.assertTrue((self.folder / "2009-figure-2.csv").exists())

    def test_every_table_of_places_says_what_one_node_does_not_show(self):
        for table in tables.choose(["2009", "goglin"]):
            self.assertIn("one NUMA node", table.one_node, table.name)


class Lab(unittest.TestCase):
    def test_counts_are_not_called_times(self):
        text = "\n".join(locality.shares_text([locality.Share("triad, bosk", 99.5)]))
        self.assertIn("no times", text)
        self.assertIn("99.50 %", text)
        self.assertEqual(locality.shares_csv([locality.Share("a", 50)]).splitlines(), ['run,"counted, %"', "a,50"])

    def test_programs_that_are_counted_exist(self):
        for table in tables.TABLES:
            for counted in table.counted:
                self.assertIn(counted.program, {*lanes.PROGRAMS, "twisted_bubbles"})
                self.assertTrue(counted.args and counted.title, table.name)

    def test_what_a_program_counts_by_itself(self):
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "bosk"
            script.write_text("#!/bin/sh\necho far 12.5 %\necho ratio 3 x\n", encoding="ascii")
            script.chmod(0o755)
            self.assertEqual(locality.printed_shares(script, "true", "run"), [locality.Share("run: far", 12.5)])
            script.write_text("#!/bin/sh\necho no kernel >&2; exit 125\n", encoding="ascii")
            with self.assertRaisesRegex(lanes.BenchError, "125: no kernel"):
                locality.printed_shares(script, "true", "run")


if __name__ == "__main__":
    unittest.main()
