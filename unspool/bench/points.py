"""What is measured: points, each one kind of request, and how its answer becomes a figure.

Knows no engine. Figures are tokens a second.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

SHORT = 32  # tokens of a prompt that is only there to begin with
AT_LENGTH = 33  # tokens written at a length: the first belongs to the prompt
Verb = Literal["decode", "prefill", "batch"]


@dataclass(frozen=True, slots=True)
class Point:
    """A request: `rows` prompts of `prompt` tokens, continued by `new` tokens each.

    `x` is its place in a chart. `reads`: the figure is of reading the prompt, not of writing.
    """

    label: str
    x: int
    rows: int
    prompt: int
    new: int
    reads: bool = False

    def rate(self, answer: Mapping[str, Any]) -> float:
        """Tokens a second: of the prompt until the first token, or of the tokens after it."""
        if self.reads:
            return float(self.rows * self.prompt / answer["first_s"])
        return float(answer["after"] / answer["rest_s"])


@dataclass(frozen=True, slots=True)
class Measure:
    """The points of a verb. The one named `main` is what engines are compared by.

    Before the first round every engine writes `warm` tokens after one prompt like those of `main`.
    """

    verb: Verb
    points: tuple[Point, ...]
    main: str
    warm: int
    axis: str

    @property
    def first(self) -> Point:
        return next(point for point in self.points if point.label == self.main)

    @property
    def context(self) -> int:
        """Most tokens of a text, in any point."""
        longest = max(point.prompt + point.new for point in self.points)
        return max(longest, self.first.prompt + self.warm)

    @property
    def rows(self) -> int:
        return max(point.rows for point in self.points)


def decode(new: int = 128, lengths: Sequence[int] = ()) -> Measure:
    """Writing `new` tokens at batch 1 after a short prompt; and some more after long ones.

    The warm-up writes as much as the main point: its text is compared with the reference's.
    """
    main = Point("decode", SHORT + new // 2, 1, SHORT, new)
    more = [Point(f"at {length}", length, 1, length, AT_LENGTH) for length in lengths]
    return Measure("decode", (main, *more), main.label, new, "tokens before the one written")


def prefill(length: int = 512) -> Measure:
    """Reading a prompt of `length` tokens at batch 1, up to its first token."""
    point = Point(str(length), length, 1, length, 1, reads=True)
    return Measure("prefill", (point,), point.label, 2, "tokens of the prompt")


def batch(new: int = 64, sizes: Sequence[int] = (1, 2, 4, 8, 16, 32)) -> Measure:
    """Writing `new` tokens of each of several texts at once; 16 of them is the main point."""
    points = tuple(Point(str(size), size, size, SHORT, new) for size in sizes)
    main = "16" if 16 in sizes else str(max(sizes))
    return Measure("batch", points, main, min(new, 8), "texts at once")
