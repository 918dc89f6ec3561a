"""Rows shaped by the rules' own definitions, in numpy and float64: plain, and the oracle of the
compiled operations. `Defined` answers what `kernels/shaping/shaped.py: Shaped` does."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from unspool.core.history import History
from unspool.kernels.reading.noise import Place, gumbel
from unspool.kernels.reading.plain import Floats, log_sum_exp, top_ids
from unspool.kernels.shaping.eights import FAR
from unspool.kernels.shaping.shaped import NOTHING, Left
from unspool.rules.rows import Rows
from unspool.rules.rule import RuleValue, columns


@dataclass(frozen=True, slots=True, eq=False)
class Seat:
    """What shapes one row: rules, what each remembers, the text so far, and the place of the noise
    (None: no pick is wanted, and no rule draws). `wanted`: a pick."""

    rules: tuple[RuleValue, ...]
    states: tuple[object, ...]
    history: History | None = None
    place: Place | None = None
    wanted: bool = False


def define(values: Floats, place: int, seats: Sequence[Seat]) -> Floats:
    """Rows [R, V] after the rule at `place` of recipes that are alike."""
    rules = [seat.rules[place] for seat in seats]
    rows = Rows(values, [s.history for s in seats], [s.states[place] for s in seats],
                [r.data for r in rules], [s.place for s in seats])
    # A row that lost everything has no maximum; it stays as it is.
    with np.errstate(invalid="ignore"):
        out = np.asarray(rules[0].kind.define(rows, *columns(rules)), np.float64)
    return np.where(np.isnan(out), -inf, out)


class Defined:
    """Rows [R, V] in float64, whose recipes have the same names in the same order."""

    def __init__(self, values: Floats, seats: Sequence[Seat]) -> None:
        for place in range(len(seats[0].rules)):
            values = define(values, place, seats)
        peak = values.max(-1, keepdims=True)
        values = values - np.where((abs(peak) > FAR) & np.isfinite(peak), peak, 0.0)
        self.rows, self.seats = values, seats
        self.norms: list[float] = log_sum_exp(values)[:, 0].tolist()

    def empty(self, i: int) -> bool:
        return not np.isfinite(self.rows[i].max())

    def left(self, i: int) -> Left:
        if self.empty(i):
            return NOTHING
        ids = np.flatnonzero(np.isfinite(self.rows[i]))
        return Left(ids, self.rows[i][ids], self.norms[i])

    def pick(self, i: int) -> tuple[int, float]:
        place = self.seats[i].place
        assert place is not None
        noise = gumbel(*place, np.arange(self.rows.shape[1]))
        token = int(np.argmax(self.rows[i] + noise))
        return token, self.processed(i, token)

    def processed(self, i: int, token: int) -> float:
        return float(self.rows[i, token]) - self.norms[i]

    def top(self, i: int, count: int) -> list[tuple[int, float]]:
        ids = top_ids(self.rows[i], min(count, self.rows.shape[1])).tolist()
        return [(t, self.processed(i, t)) for t in ids if self.rows[i, t] > -inf]
