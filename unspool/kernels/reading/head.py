"""A head: rows of logits as the rules see them, the likeliest tokens sorted, the rest as one sum.

A cut that removes a tail is decided by the sorted top of a row. A row whose cut may lie beyond it
is marked `short`: the rules are applied to it again in a larger head.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unspool.kernels.reading.draw import sums_before
from unspool.kernels.reading.facts import NORM
from unspool.kernels.reading.logits import Logits
from unspool.kernels.reading.plain import Floats, Members, log_sum_exp

TOP = 64

Bools = NDArray[np.bool_]


class Head:
    """`values` [R, K] float64 logits, best first, -inf where cut; `ids` [R, K] their tokens.

    `outside` [R, 1]: log of the summed exp of the logits beyond the head, -inf when nothing is
    there. `whole` [R, 1]: nothing is, or what was there is cut. `short` [R]: the head was too small
    for a cut, and what it says of the row from then on does not count. `values` is replaced, never
    written into.
    """

    def __init__(self, logits: Logits, members: Members, top: int = TOP) -> None:
        """`members`: which rows of the logits."""
        self.logits, self.members = logits, members
        self.ids, self.values = logits.top(members, top)
        self.values.flags.writeable = False
        self.uncut = self.values  # as long as nothing but divisions changed it
        self.peak: Floats = self.values[:, :1]
        self.shift: Floats = np.zeros_like(self.peak)  # what was taken off the logits so far,
        self.divisor: Floats = np.ones_like(self.peak)  # and what they were then divided by
        everything = self.ids.shape[1] == logits.values.shape[1]
        self.whole: Bools = np.full(self.peak.shape, everything)
        self.short: Bools = np.zeros(len(self.peak), np.bool_)
        self._outside: Floats | None = None

    @property
    def maximum(self) -> Floats:
        return self.values[:, :1]

    @property
    def rank(self) -> NDArray[np.int64]:
        """0 for the likeliest token, 1 for the next, ..."""
        return np.arange(self.values.shape[1])[None, :]

    @property
    def outside(self) -> Floats:
        if self._outside is None:
            self._outside = np.full_like(self.peak, -np.inf)
            beyond = np.flatnonzero(~self.whole[:, 0])
            if len(beyond):
                self._outside[beyond, 0] = self.logits.rest(
                    np.asarray(self.members)[beyond], self.ids[beyond, -1],
                    self.shift[beyond, 0], self.divisor[beyond, 0])
        return self._outside

    @property
    def log_sum_exp(self) -> Floats:
        if self.values is self.uncut:  # what the kernels know of the row
            if self.shift is self.peak:
                return self.logits.masses(self.members, self.divisor[:, 0])[:, None]
            return self.logits.table[self.members, NORM][:, None]
        return np.asarray(np.logaddexp(log_sum_exp(self.values), self.outside))

    @property
    def above(self) -> Floats:
        """The probability of all tokens likelier than each."""
        return sums_before(self.values, self.log_sum_exp)

    def divide(self, by: Floats) -> None:
        """Divide the logits, moved first so that the largest is 0 and nothing overflows."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = (self.values - self.maximum) / by
            self.shift, self.divisor = self.peak, self.divisor * by
        self.uncut = values if self.values is self.uncut else self.uncut
        self.values = values
        self._outside = None

    def cut_tail(self, drop: Bools) -> None:
        """Remove the marked tokens and all that are less likely; the likeliest one always stays."""
        drop = drop & (self.rank > 0)
        self.short = self.short | ~(drop[:, -1] | self.whole[:, 0])
        self.values = np.where(drop, -np.inf, self.values)
        self.whole = np.ones_like(self.whole)
        self._outside = None

    def full(self, r: int) -> Floats:
        """Row `r` over the whole vocabulary, as shaped so far."""
        if self.whole[r, 0]:
            row: Floats = np.full(self.logits.values.shape[1], -np.inf)
            row[self.ids[r]] = self.values[r]
            return row
        with np.errstate(over="ignore", invalid="ignore"):
            rows = self.logits.wide([self.members[r]])
            return np.asarray((rows[0] - self.shift[r]) / self.divisor[r])

    def all(self) -> Floats:
        """[R, V]: every row over the whole vocabulary, as shaped so far."""
        return np.stack([self.full(r) for r in range(len(self.members))])
