"""When two answers are the same: their form, without what does not count. Knows no texts around."""
from __future__ import annotations

import re
from decimal import Decimal

MINUS = "\u2212"
# Commas part thousands and nothing else. A dash behind a letter, a digit or a bracket is no sign.
NUMBER = re.compile(
    rf"(?:(?<![\w)\]])[-+{MINUS}])?"
    r"(?:(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|(?<![0-9])\.[0-9]+)"
    r"(?:[eE][-+]?[0-9]{1,3}(?![0-9A-Za-z]))?"
)


def plain(number: str) -> str:
    """A number as digits alone: "1,000", "1000.0" and "1e3" are "1000"; exact, whatever its size.
    """
    digits = format(Decimal(number.replace(",", "").replace(MINUS, "-")), "f")
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    return "0" if digits.strip("-0") == "" else digits


def folded(answer: str) -> str:
    """An answer as it is counted: without case, white space as single spaces, numbers plain.

    A number may end in the full stop of its sentence. Anything else is part of the answer.
    """
    answer = " ".join(answer.split())
    number = answer.removesuffix(".")
    return plain(number) if NUMBER.fullmatch(number) else answer.casefold()
