"""A number that changes while a text is written: what a parameter may be in place of a number.

A step is a token written since the stage of the program began; the first has number 0.

As a string, with straight lines and with jumps:

    number [ "/" step ] { ".." number "/" step }    1.2..0.5/40
    number [ "/" step ] { "!" number "/" step }     1.2!0.7/20
"""
from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

from unspool.core.errors import ParameterError

T = TypeVar("T")
NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
POINT = re.compile(rf"\s*({NUMBER})\s*(?:/\s*(\d+))?\s*", re.ASCII)
LONGEST, MOST_STEP = 1000, 2**31  # characters of a string, and a step


@dataclass(frozen=True, slots=True, repr=False)
class Schedule:
    """Straight lines between `points`, (step, value) each, in rising order of steps.

    Before the first point and after the last one the value stays as it is there. With `jumps` it
    stays at each point's value until the next. `whole`: values are rounded to whole numbers.
    """

    points: tuple[tuple[int, float], ...]
    jumps: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        steps = [step for step, _ in self.points]
        if not all(type(step) is int and 0 <= step < MOST_STEP for step in steps) or (
                not steps or any(a >= b for a, b in pairwise(steps))):
            raise ParameterError(f"a schedule at steps {steps[:8]}: steps are whole numbers from 0 "
                                 "on, and rise; give each once, in order")
        if not all(map(math.isfinite, self.values)):
            raise ParameterError(f"a schedule of {list(self.values[:8])}: its values are numbers; "
                                 "give finite ones")

    def at(self, step: int) -> float:
        found = self.between(step)
        return round(found) if self.whole else found

    def between(self, step: int) -> float:
        before = [p for p in self.points if p[0] <= step] or [self.points[0]]
        after = [p for p in self.points if p[0] > step]
        (start, low), (end, high) = before[-1], (after or before)[0 if after else -1]
        if self.jumps or end <= start or step < start:
            return low
        return low + (high - low) * (step - start) / (end - start)

    @property
    def values(self) -> tuple[float, ...]:
        """The extremes lie among them."""
        return tuple(value for _, value in self.points)

    def __str__(self) -> str:
        (step, value), *later = self.points
        out = short(value) + (f"/{step}" if step or not later else "")
        return out + "".join(f"{'!' if self.jumps else '..'}{short(v)}/{n}" for n, v in later)

    def __repr__(self) -> str:
        return repr(str(self))


def short(value: float) -> str:
    """The number in the fewest characters that are read as the same one."""
    brief = f"{value:g}"
    return brief if float(brief) == value else repr(float(value))


def read_number(text: str) -> int | float | Schedule | None:
    """The number or the schedule that a string writes; None for what is neither."""
    mark = "!" if "!" in text else ".."
    found = [POINT.fullmatch(part) for part in text.split(mark)] if len(text) <= LONGEST else [None]
    points = [(m[1], m[2]) for m in found if m]
    if len(points) < len(found) or any(step is None for _, step in points[1:]):
        return None
    number, step = points[0]
    if len(points) == 1 and step is None:
        return int(number) if number.lstrip("+-").isdigit() else float(number)
    try:
        return Schedule(tuple((int(step or 0), float(n)) for n, step in points), mark == "!")
    except ParameterError:
        return None


def ramp(start: float, end: float, over: int) -> Schedule:
    """From `start` to `end` in a straight line over so many tokens."""
    return Schedule(((0, float(start)), (over, float(end))))


def jumps(*points: tuple[int, float]) -> Schedule:
    """From each (step, value) on, that value."""
    return Schedule(tuple((step, float(value)) for step, value in points), jumps=True)


def steady(value: object) -> bool:
    """Whether no schedule is in it: as itself, in a tuple, or in a field of a dataclass or a tuple
    there. What lies deeper is data."""
    if is_dataclass(value) and not isinstance(value, type | Schedule):
        return all(_flat(getattr(value, f.name)) for f in fields(value))
    return all(map(steady, value)) if isinstance(value, tuple) else _flat(value)


def at(value: T, step: int) -> T:
    """The same value with every schedule in it as it is at this step."""
    found: Any = value
    if isinstance(found, Schedule):
        found = found.at(step)
    elif steady(found):
        pass
    elif isinstance(found, tuple):
        found = tuple(at(item, step) for item in found)
    else:
        found = replace(found, **{f.name: at(getattr(found, f.name), step) for f in fields(found)
                                  if not _flat(getattr(found, f.name))})
    return found  # type: ignore[no-any-return]


def _flat(value: object) -> bool:
    items = value if isinstance(value, tuple) else (value,)
    return not any(type(item) is Schedule for item in items)
