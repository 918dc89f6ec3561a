"""A figure: what was measured, the bound it must keep, and whether it does.

Knows nothing of how anything is measured.
"""
from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

Sign = Literal["<=", ">=", "=="]
HOLDS: dict[Sign, Callable[[Any, Any], bool]] = {"<=": operator.le, ">=": operator.ge,
                                                 "==": operator.eq}


@dataclass(frozen=True, slots=True)
class Figure:
    """`measured` in `unit`, to stand in the relation `sign` to `bound`; None: only to be known."""

    what: str
    measured: float
    sign: Sign | None = None
    bound: float | None = None
    unit: str = ""
    note: str = ""

    @property
    def ok(self) -> bool:
        """True without a bound. NaN keeps no bound."""
        return self.sign is None or HOLDS[self.sign](self.measured, self.bound)

    def line(self) -> str:
        """One line of the table."""
        bound = f"{self.sign} {number(self.bound)}" if self.sign and self.bound is not None else ""
        verdict = ("ok" if self.ok else "FAIL") if self.sign else "-"
        measured = f"{number(self.measured)} {self.unit}".rstrip()
        line = f"  {self.what:46s} {measured:>16s}  {bound:12s} {verdict:4s} {self.note}"
        return line.rstrip()

    def json(self, section: str) -> dict[str, Any]:
        return {"section": section, **asdict(self), "ok": self.ok}


def number(value: float) -> str:
    """Counts in full, other numbers to four digits."""
    return str(value) if isinstance(value, int) else f"{value:.4g}"


def at_most(what: str, measured: float, bound: float, unit: str = "", note: str = "") -> Figure:
    return Figure(what, measured, "<=", bound, unit, note)


def at_least(what: str, measured: float, bound: float, unit: str = "", note: str = "") -> Figure:
    return Figure(what, measured, ">=", bound, unit, note)


def exactly(what: str, measured: float, bound: float, unit: str = "", note: str = "") -> Figure:
    return Figure(what, measured, "==", bound, unit, note)


def seen(what: str, measured: float, unit: str = "", note: str = "") -> Figure:
    """A figure without a bound."""
    return Figure(what, measured, None, None, unit, note)
