# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A figure as SVG: panels side by side, lines with points, a legend, and the text's published values below."""

import math
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

# Told apart by those who see no red or green, too; a form of its own for each besides.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#555555", "#000000")
WIDTH, HEIGHT, LEFT, TOP, GAP, BOTTOM = 380, 260, 62, 58, 40, 44
LEAST = 700  # wide: what is written has to go somewhere


class Point(NamedTuple):
    x: float
    y: float
    low: float
    high: float


class Lines(NamedTuple):
    title: str
    series: dict[str, list[Point]]
    published: dict[str, list[tuple[float, float]]]  # hollow, where a series has a value of the paper's beside it


class Axes(NamedTuple):
    x: str
    y: str
    log_x: bool
    log_y: bool


class Scale:
    def __init__(self, values: list[float], log: bool, first: float, last: float):
        self.log = log and all(value > 0 for value in values)
        low, high = min(values), max(values)
        if not self.log:
            low, high = min(low, 0.0), max(high, 0.0)
        if low == high:
            low, high = (low / 2, high * 2) if self.log else (low, low + 1)
        self.low, self.high, self.first, self.last = low, high, first, last

    def at(self, value: float) -> float:
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        share = ((math.log(value) if self.log else value) - low) / (high - low)
        return self.first + share * (self.last - self.first)

    def ticks(self) -> list[float]:
        if self.log:
            step = max(1, math.ceil(math.log2(self.high / self.low) / 7))
            first = math.ceil(math.log2(self.low) - 1e-9)
            return [2.0**i for i in range(first, math.floor(math.log2(self.high) + 1e-9) + 1, step)]
        size = 10 ** math.floor(math.log10(self.high - self.low))
        unit = next(size * part for part in (0.1, 0.2, 0.5, 1, 2) if (self.high - self.low) / (size * part) <= 8)
        return [i * unit for i in range(math.ceil(self.low / unit - 1e-9), math.floor(self.high / unit + 1e-9) + 1)]


def text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(words)}</text>'


def mark(form: int, x: float, y: float, colour: str) -> str:
    if form % 3 == 1:
        return f'<rect x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6" fill="{colour}"/>'
    if form % 3 == 2:
        return f'<path d="M{x:.1f} {y - 4:.1f} l4 7 h-8 z" fill="{colour}"/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'


def hollow(name: str, x: float, y: float, at: tuple[float, float], colour: str) -> str:
    return (f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="5" fill="none" stroke="{colour}" stroke-dasharray="2 1">'
            f"<title>{escape(name)}, published: {x:g}, {y:g}</title></circle>")


def line(number: int, name: str, points: list[Point], across: Scale, up: Scale, legend: tuple[float, float]) -> list[str]:
    colour = COLOURS[number % len(COLOURS)]
    places = [(across.at(point.x), up.at(point.y)) for point in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    out = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>']
    for point, (x, y) in zip(points, places):
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{up.at(point.low):.1f}" y2="{up.at(point.high):.1f}" stroke="{colour}"/>')
        out.append(f"<g>{mark(number, x, y, colour)}<title>{escape(name)}: {point.x:g}, {point.y:g}</title></g>")
    x, y = legend
    return [*out, mark(number, x, y - 4, colour), text(x + 9, y, name)]


def grid(across: Scale, up: Scale, axes: Axes) -> list[str]:
    left, bottom = across.first, up.first
    out = []
    for tick in up.ticks():
        y = up.at(tick)
        out.append(f'<line x1="{left:.1f}" x2="{across.last:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(text(left - 6, y + 4, f"{tick:g}", 'text-anchor="end"'))
    for tick in across.ticks():
        out.append(text(across.at(tick), bottom + 16, f"{tick:g}", 'text-anchor="middle"'))
    middle = (bottom + up.last) / 2
    out.append(text((left + across.last) / 2, bottom + 34, axes.x, 'text-anchor="middle"'))
    out.append(text(left - 46, middle, axes.y, f'text-anchor="middle" transform="rotate(-90 {left - 46:.1f} {middle:.1f})"'))
    return out


def heights(panels: list[Lines]) -> list[float]:
    """All values, so that panels beside each other have one scale."""
    return [y for lines in panels for series in lines.series.values() for point in series for y in (point.low, point.high)] + [
        y for lines in panels for series in lines.published.values() for _, y in series]


def panel(lines: Lines, axes: Axes, left: float, values: list[float]) -> list[str]:
    points = [point for series in lines.series.values() for point in series]
    out = [text(left, TOP - 12, lines.title, 'font-weight="bold"')]
    if not points:
        return [*out, text(left, TOP + 20, "nothing was measured")]
    across = Scale([point.x for point in points], axes.log_x, left, left + WIDTH)
    up = Scale(values, axes.log_y, TOP + HEIGHT, TOP)
    out += grid(across, up, axes)
    for number, (name, series) in enumerate(lines.series.items()):
        if series:
            out += line(number, name, series, across, up, (left + 4, TOP + HEIGHT + BOTTOM + 18 + 16 * number))
        out += [hollow(name, x, y, (across.at(x), up.at(y)), COLOURS[number % len(COLOURS)])
                for x, y in lines.published.get(name, [])]
    return out


def draw(title: str, axes: Axes, panels: list[Lines], below: list[str]) -> str:
    """The whole file."""
    wide = max(LEFT + len(panels) * (WIDTH + LEFT) + GAP, LEAST)
    legend = 16 * max((len(lines.series) for lines in panels), default=0)
    foot = TOP + HEIGHT + BOTTOM + 26 + legend
    # A line takes as many characters as the picture has room for.
    room = int((wide - LEFT) / 6.5)
    words = [part for note in below for part in wrapped(note, room)]
    high = foot + 15 * len(words) + 12
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}"'
           f' font-family="sans-serif" font-size="12" role="img" aria-label={quoteattr(title)}>',
           f'<rect width="{wide}" height="{high}" fill="white"/>', text(LEFT, 22, title, 'font-size="14"')]
    for number, lines in enumerate(panels):
        out += panel(lines, axes, LEFT + number * (WIDTH + LEFT), heights(panels))
    out += [text(LEFT, foot + 15 * i, part, 'fill="#444" font-size="11"') for i, part in enumerate(words)]
    return "\n".join([*out, "</svg>", ""])


def wrapped(words: str, room: int) -> list[str]:
    lines = [""]
    for word in words.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > room:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines
