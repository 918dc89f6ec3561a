"""Numbers that a strategy cannot work with are refused by name, when it is made."""
from __future__ import annotations

from unspool.core.errors import ParameterError
from unspool.core.values import shown


def whole(least: int, **numbers: object) -> None:
    """Raises ParameterError for what is no whole number from `least` on."""
    for name, value in numbers.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ParameterError(f"{name}={shown(value)}: must be a whole number in {least}..; "
                                 "give one", name)


def within(low: float, high: float, **numbers: float) -> None:
    """Raises ParameterError for a number that is not in low..high, NaN included."""
    for name, value in numbers.items():
        if not low <= value <= high:
            raise ParameterError(f"{name}={shown(value)}: must be a number in {low:g}..{high:g}; "
                                 "give one", name)


def answers(n: int, count: int) -> None:
    """Raises ParameterError where `n` texts cannot be chosen among `count`."""
    whole(1, count=count, n=n)
    if n > count:
        raise ParameterError(f"n={n} of count={count} texts: must be at most as many; write more, "
                             "or ask for fewer", "n")
