"""A scatter chart as SVG, small enough to stand in a page. Knows numbers and names only."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from statistics import median

from unspool.bench.plot import COLOURS

WIDE, HIGH, LEFT, BOTTOM, TOP = 720, 460, 70, 60, 90
FONT = 'font-family="sans-serif" font-size="13"'


@dataclass(frozen=True, slots=True)
class Group:
    """Points of one colour; their median is drawn large."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


class Axis:
    """Numbers along one side, with ticks at round ones."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        low, high = min(values), max(values)
        step = round_step(high - low or 1.0)
        first = floor(low / step)
        count = max(ceil(high / step) - first, 1)
        self.low, self.high = first * step, (first + count) * step
        self.begin, self.end = begin, end
        self.ticks = [round(self.low + i * step, 10) for i in range(count + 1)]

    def at(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(self.begin + share * (self.end - self.begin), 1)


def round_step(length: float) -> float:
    """1, 2 or 5 times a power of ten, 4 to 10 of which make up a length."""
    power = 10.0 ** floor(log10(length))
    times = length / power
    return power * (0.2 if times < 2 else 0.5 if times < 5 else 1)


def scatter(groups: Sequence[Group], across: str, up: str) -> str:
    """The chart of all groups. `across`, `up`: what the axes show."""
    x = Axis([v for g in groups for v in g.x], LEFT, WIDE - 20)
    y = Axis([v for g in groups for v in g.y], HIGH - BOTTOM, TOP)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" '
             f'width="{WIDE}" height="{HIGH}">',
             f'<rect width="{WIDE}" height="{HIGH}" fill="white"/>', *grid(x, y)]
    for i, group in enumerate(groups):
        colour = COLOURS[2 * i % len(COLOURS)]
        parts += [f'<circle cx="{x.at(a)}" cy="{y.at(b)}" r="4" fill="{colour}" '
                  'fill-opacity="0.45"/>' for a, b in zip(group.x, group.y, strict=True)]
        middle = x.at(median(group.x)), y.at(median(group.y))
        parts.append(f'<circle cx="{middle[0]}" cy="{middle[1]}" r="9" fill="{colour}" '
                     'stroke="black" stroke-width="2"/>')
        parts += [f'<circle cx="{LEFT + 6}" cy="{18 + 22 * i}" r="6" fill="{colour}"/>',
                  text(LEFT + 20, 22 + 22 * i, group.name, "start")]
    parts += [text((LEFT + WIDE) / 2, HIGH - 15, across, "middle"),
              f'<g transform="rotate(-90 18 {(TOP + HIGH - BOTTOM) / 2})">'
              + text(18, (TOP + HIGH - BOTTOM) / 2, up, "middle") + "</g>", "</svg>"]
    return "\n".join(parts) + "\n"


def grid(x: Axis, y: Axis) -> list[str]:
    out = []
    for tick in x.ticks:
        out += [line(x.at(tick), y.begin, x.at(tick), y.end),
                text(x.at(tick), y.begin + 20, f"{tick:g}", "middle")]
    for tick in y.ticks:
        out += [line(x.begin, y.at(tick), x.end, y.at(tick)),
                text(x.begin - 8, y.at(tick) + 4, f"{tick:g}", "end")]
    return out


def line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#ddd"/>'


def text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" {FONT} text-anchor="{anchor}">{escape(words)}</text>'
