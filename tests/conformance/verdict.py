# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What two runs of one test say: passed or why not, alike or not, and what is excused."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from dejagnu import Directives
from runs import Outcome

BOTH, NEITHER, STOCK_ONLY, BOSK_ONLY, NOT_RUN = (
    "both", "neither", "stock only", "bosk only", "not run")
COLUMNS = (BOTH, NEITHER, STOCK_ONLY, BOSK_ONLY, NOT_RUN)


def failure(directives: Directives, outcome: Outcome) -> str:
    """Why a run did not pass by what the test itself says; "" when it did."""
    if outcome.timed_out:
        return "time limit"
    if directives.should_fail and outcome.status == 0:
        return "exit 0, should have failed"
    if not directives.should_fail and outcome.status != 0:
        return outcome.end()
    # In Tcl's regular expressions a dot stands for the end of a line, too.
    if directives.output and not re.search(directives.output, outcome.output, re.DOTALL):
        return "wrong output"
    return ""


def comparable(line: str) -> str:
    """A line without what differs from run to run: addresses."""
    return re.sub(r"\b0x[0-9a-f]+", "0x?", line)


def failed_otherwise(stock: Outcome, bosk: Outcome) -> str:
    """For tests that should fail: in what bosk's failure differs from that of stock."""
    if stock.end() != bosk.end():
        return "%s instead of %s" % (bosk.end(), stock.end())
    if comparable(stock.first_line()) != comparable(bosk.first_line()):
        return "another line than '%s'" % stock.first_line()
    return ""


@dataclass
class Result:
    """A test on both libraries."""
    name: str
    folder: str
    kind: str
    why: str = ""  # one line
    line: str = ""  # the first that the failing program printed
    note: str = ""  # what running it again showed
    timed_out: bool = False
    seconds: float = 0  # of the slower run


def compare(name: str, folder: str, directives: Directives, stock: Outcome, bosk: Outcome) -> Result:
    result = Result(name, folder, BOTH, seconds=max(stock.seconds, bosk.seconds))
    on_stock, on_bosk = failure(directives, stock), failure(directives, bosk)
    if not on_stock and not on_bosk and directives.should_fail:
        on_bosk = failed_otherwise(stock, bosk)
    if on_stock and on_bosk:
        result.kind, result.line = NEITHER, bosk.first_line()
        result.why = (on_stock if on_stock == on_bosk
                      else "stock: %s, bosk: %s" % (on_stock, on_bosk))
    elif on_bosk:
        result.kind, result.why, result.line = STOCK_ONLY, on_bosk, bosk.first_line()
        result.timed_out = bosk.timed_out
    elif on_stock:
        result.kind, result.why, result.line = BOSK_ONLY, on_stock, stock.first_line()
        result.timed_out = stock.timed_out
    return result


# A test that takes more than this part of the limit alone may well take all of it beside others.
PART_OF_LIMIT = 1 / 20


def after_second_run(first: Result, second: Result) -> Result:
    """The test once more, alone. A time limit that a slow test reaches only on a loaded machine is no
    difference; one that a quick test reached is a hang, and anything else that went wrong once counts."""
    if second.kind == first.kind:
        second.note = "again when run alone"
        return second
    if first.timed_out and second.kind == BOTH and second.seconds > first.seconds * PART_OF_LIMIT:
        second.note = "load: reached the time limit beside other tests, takes %.0f s alone" % (
            second.seconds)
        return second
    first.note = "flaky: %s when run alone, in %.1f s" % (
        "passed" if second.kind == BOTH else second.kind, second.seconds)
    return first


def read_exceptions(file: Path) -> dict:
    """Lines `TEST: reason`; # begins a comment. Names and reasons in the order of the file."""
    result = {}
    if not file.exists():
        return result
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name, colon, reason = line.partition(": ")
        if not colon or not reason.strip():
            raise ValueError("%s:%d: not 'TEST: reason'" % (file, number))
        result[name] = reason.strip()
    return result


def aligned(lines: list) -> list:
    """Rows of values as text: the first column to the left, numbers to the right."""
    widths = [max(len(str(line[column])) for line in lines) for column in range(len(lines[0]))]
    return ["  ".join(str(value).ljust(width) if column == 0 else str(value).rjust(width)
                      for column, (value, width) in enumerate(zip(line, widths))).rstrip()
            for line in lines]


def table(results: list) -> list:
    """Lines: folders, and how many tests of each ended how."""
    folders = list(dict.fromkeys(result.folder for result in results))
    counts = Counter((result.folder, result.kind) for result in results)
    heads = ["folder", "tests", *COLUMNS]
    lines = [[folder, sum(counts[folder, kind] for kind in COLUMNS),
              *(counts[folder, kind] for kind in COLUMNS)] for folder in folders]
    lines.append(["all", *(sum(line[column] for line in lines) for column in range(1, len(heads)))])
    return aligned([heads, *lines])
