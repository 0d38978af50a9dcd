# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A measured table as text, CSV and, for figures, SVG: ours, what the paper has published, and the quotient."""

import csv
import io
from typing import NamedTuple, Optional

from report import number

from . import svg
from .measure import Figures, Measurement
from .model import Cell, Panel, Table
from .published import PAPERS, TEXT, VALUES, Value

HEADER = ("row", "column", "unit", "median", "min", "max", "rounds", "published", "published unit", "published of",
          "ours/published", "failure")


class Line(NamedTuple):
    row: str
    column: str
    unit: str
    figures: Figures
    published: Optional[Value]
    aside: bool = False

    @property
    def ratio(self) -> Optional[float]:
        if not self.figures.values or self.published is None or not self.published.compares:
            return None
        return self.figures.median / self.published.value


def lines_of(table: Table, measurement: Measurement) -> list[Line]:
    """Those that are measured or have failed, and what is only published."""
    published = dict(VALUES.get(table.name, {}))
    lines = []
    for cell in measurement.cells:
        figures = measurement.figures[cell.key]
        if figures.values or figures.failure:
            lines.append(Line(cell.row, cell.column, cell.unit, figures, published.pop(cell.key, None), cell.aside))
    lines += [Line(row, column, value.unit, Figures(), value) for (row, column), value in published.items()]
    return lines


def ours(figures: Figures) -> str:
    if figures.failure:
        return "FAILED"
    if not figures.values:
        return "-"
    if len(figures.values) == 1:
        return number(figures.median)
    return f"{number(figures.median)} [{number(min(figures.values))}–{number(max(figures.values))}]"


def theirs(value: Optional[Value]) -> str:
    if value is None:
        return ""
    return number(value.value) + (f" ({value.of})" if value.of else "")


def aligned(lines: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return ["  ".join(word.ljust(width) for word, width in zip(line, widths)).rstrip() for line in lines]


def heading(table: Table) -> list[str]:
    paper = PAPERS[table.paper]
    return [f"== {table.name}: {table.title} ==", f"published: {paper.who}, on {paper.machine}"]


def said(table: Table) -> list[str]:
    return [f"published: {words}" for words in TEXT.get(table.name, ())]


def table_text(table: Table, measurement: Optional[Measurement], missing: str) -> str:
    out = heading(table)
    if table.about:
        out.append(f"ours: {table.about}")
    out += said(table)
    if missing:
        out.append(missing)
    lines = lines_of(table, measurement) if measurement else published_only(table)
    out += body(table, [line for line in lines if not line.aside])
    if measurement:
        out += [f"FAILED {failure}" for failure in measurement.failures()]
    return "\n".join(out) + "\n"


def number_of(column: str) -> Optional[float]:
    return float(column) if column.isdigit() else None


def across(lines: list[Line]) -> list[str]:
    """A figure's lines: a row for each series, a column for each number on its axis."""
    columns = sorted({line.column for line in lines}, key=float)
    rows = [("row", "unit", *columns)]
    for row, unit in dict.fromkeys((line.row, line.unit) for line in lines):
        cells = {line.column: ours(line.figures) for line in lines if (line.row, line.unit) == (row, unit)}
        rows.append((row, unit, *(cells.get(column, "") for column in columns)))
    # The other way round where that is narrower.
    return aligned(rows if len(columns) + 2 <= 2 * len(rows) else list(zip(*rows)))


def down(lines: list[Line]) -> list[str]:
    rows = [("row", "column", "unit", "ours: median [min–max]", "published", "ours/published")]
    rows += [(line.row, line.column, line.unit, ours(line.figures), theirs(line.published),
              "" if line.ratio is None else number(line.ratio)) for line in lines]
    return aligned(rows)


def body(table: Table, lines: list[Line]) -> list[str]:
    """What is on a figure's axes, then line by line what is not, or has been published."""
    drawn = [line for line in lines if table.figure and number_of(line.column) is not None
             and (line.figures.values or line.figures.failure)]
    rest = [line for line in lines if line not in drawn or line.published is not None]
    return (across(drawn) if drawn else []) + (down(rest) if rest else [])


def published_only(table: Table) -> list[Line]:
    return [Line(row, column, value.unit, Figures(), value) for (row, column), value in VALUES.get(table.name, {}).items()]


def table_csv(table: Table, measurement: Optional[Measurement]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    for line in lines_of(table, measurement) if measurement else published_only(table):
        values = line.figures.values
        measured = (f"{line.figures.median:.6g}", f"{min(values):.6g}", f"{max(values):.6g}") if values else ("", "", "")
        value = line.published
        there = (f"{value.value:g}", value.unit, value.of) if value else ("", "", "")
        ratio = "" if line.ratio is None else f"{line.ratio:.4g}"
        writer.writerow([line.row, line.column, line.unit, *measured, len(values), *there, ratio, line.figures.failure])
    return out.getvalue()


def points_of(cells: list[Cell], measurement: Measurement, row: str, panel: Panel) -> list[svg.Point]:
    points = []
    for cell in cells:
        values = measurement.figures[cell.key].values
        if cell.row == row and values and panel.unit in ("", cell.unit):
            points.append(svg.Point(float(cell.column), measurement.figures[cell.key].median, min(values), max(values)))
    return sorted(points)


def published_points(table: Table, row: str, points: list[svg.Point], unit: str) -> list[tuple[float, float]]:
    """Where we have measured, too."""
    measured = {point.x for point in points}
    found = [(number_of(column), value) for (its_row, column), value in VALUES.get(table.name, {}).items() if its_row == row]
    return [(x, value.value) for x, value in found if x in measured and value.unit == unit]


def lines_of_panel(table: Table, measurement: Measurement, panel: Panel) -> svg.Lines:
    series, published = {}, {}
    for name, row in panel.series:
        series[name] = points_of(measurement.cells, measurement, row, panel)
        units = {cell.unit for cell in measurement.cells if cell.row == row}
        published[name] = [point for unit in units for point in published_points(table, row, series[name], unit)]
    return svg.Lines(panel.title, series, published)


def figure_svg(table: Table, machine_words: str, measurement: Measurement, missing: str) -> str:
    figure = table.figure
    panels = [lines_of_panel(table, measurement, panel) for panel in figure.panels(measurement.cells)]
    below = [f"ours: {machine_words}", *([f"ours: {table.about}"] if table.about else []), *said(table),
             *([missing] if missing else []), "bars: least to most; dashed circles: published"]
    axes = svg.Axes(figure.x, figure.y, figure.log_x, figure.log_y)
    return svg.draw(f"{table.name}: {table.title}", axes, panels, below)
