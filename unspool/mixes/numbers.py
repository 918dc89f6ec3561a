"""The numbers of a mix: checked when it is made, plain when it is used. Knows no mix by name."""
from __future__ import annotations

import math
from typing import SupportsFloat

from unspool.core.errors import ParameterError
from unspool.core.schedule import Schedule
from unspool.core.values import Range, shown

Number = float | Schedule


def check(name: str, value: Number, low: float, high: float, strict: bool = False) -> None:
    """ParameterError, unless the number, or each point of the schedule, lies in low..high (with
    `strict`: above low)."""
    allowed = Range(low, high, strict)
    for number in value.values if isinstance(value, Schedule) else (value,):
        if not allowed.holds(real(number)):
            raise ParameterError(f"{name}={shown(value)}: must be a number in {allowed}, or a "
                                 "schedule of such numbers; give one, or leave it out", name)


def real(value: object) -> float:
    """The number; NaN, which no range holds, for what is none."""
    if isinstance(value, bool | str | bytes) or not isinstance(value, SupportsFloat):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):  # an array, or a number too large
        return math.nan


def plain(value: Number) -> float:
    """The number at the step at hand: `core.schedule.at` has put it in the schedule's place."""
    if isinstance(value, Schedule):
        raise TypeError(f"{value} is a schedule still: take it at a step before it is used")
    return float(value)
