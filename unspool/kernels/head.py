"""A head: rows of logits as the rules see them, the likeliest tokens sorted, the rest as one sum.

A cut that removes a tail is decided by the sorted top of a row; one that may reach beyond it is
refused (`BeyondHead`), and the rule is applied again to a head that holds the whole row.
"""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

TOP = 512

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def top_ids(row: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Ids of the `count` largest values of one row, best first; equal values by lowest id."""
    if count < row.shape[0]:
        least = np.partition(row, row.shape[0] - count)[row.shape[0] - count]
        ids = np.flatnonzero(row >= least)
        above = row[ids] > least
        ids = np.sort(np.concatenate([ids[above], ids[~above][:count - int(above.sum())]]))
    else:
        ids = np.arange(row.shape[0])
    return np.asarray(ids[np.argsort(-row[ids], kind="stable")], dtype=np.int64)


def log_sum_exp(values: Floats) -> Floats:
    """Along the last axis, kept; -inf where nothing is left."""
    peak = values.max(-1, keepdims=True)
    safe = np.where(np.isfinite(peak), peak, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(safe + np.log(np.exp(values - safe).sum(-1, keepdims=True)))


class BeyondHead(Exception):  # noqa: N818  # a signal between head and shaper, no error
    """The cut may lie beyond the head. Nothing was changed: widen the head and cut again."""


class Head:
    """`values` [R, K] float64 logits, best first, -inf where cut; `ids` [R, K] their tokens.

    `outside` [R, 1]: log of the summed exp of the logits beyond the head, -inf when nothing is
    there. `whole` [R, 1]: nothing is, or what was there is cut.
    """

    def __init__(self, rows: Floats, top: int = TOP) -> None:
        """`rows` [R, V] float64."""
        self.rows = rows
        count = min(top, rows.shape[1])
        self.ids = np.stack([top_ids(row, count) for row in rows])
        self.values: Floats = np.take_along_axis(rows, self.ids, -1)
        self.peak: Floats = self.values[:, :1]
        self.shift: Floats = np.zeros_like(self.peak)  # what was taken off `rows` so far,
        self.divisor: Floats = np.ones_like(self.peak)  # and what they were then divided by
        self.whole: Bools = np.full((rows.shape[0], 1), count == rows.shape[1])
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
            for r in map(int, np.flatnonzero(~self.whole[:, 0])):
                rest = self.full(r)
                rest[self.ids[r]] = -np.inf
                self._outside[r] = log_sum_exp(rest)
        return self._outside

    @property
    def log_sum_exp(self) -> Floats:
        return np.asarray(np.logaddexp(log_sum_exp(self.values), self.outside))

    @property
    def above(self) -> Floats:
        """The probability of all tokens likelier than each."""
        with np.errstate(invalid="ignore"):  # a row in which nothing is left
            p = np.exp(self.values - self.log_sum_exp)
        return np.asarray(np.cumsum(p, -1) - p)

    def divide(self, by: Floats) -> None:
        """Divide the logits, moved first so that the largest is 0 and nothing overflows."""
        with np.errstate(over="ignore", invalid="ignore"):
            self.values = (self.values - self.maximum) / by
            self.shift, self.divisor = self.peak, self.divisor * by
        self._outside = None

    def cut_tail(self, drop: Bools) -> None:
        """Remove the marked tokens and all that are less likely; the likeliest one always stays."""
        drop = drop & (self.rank > 0)
        if not (drop[:, -1:] | self.whole).all():
            raise BeyondHead
        self.values = np.where(drop, -np.inf, self.values)
        self.whole = np.ones_like(self.whole)
        self._outside = None

    def widened(self) -> Head:
        """The same rows with every token in the head, in the order that they had at first: what
        divided equal was not equal before."""
        wide = Head(self.rows, self.rows.shape[1])
        wide.values = np.take_along_axis(self.all(), wide.ids, -1)
        wide.shift, wide.divisor = self.shift, self.divisor
        return wide

    def all(self) -> Floats:
        """[R, V]: every row over the whole vocabulary, as shaped so far."""
        return np.stack([self.full(r) for r in range(len(self.rows))])

    def full(self, r: int) -> Floats:
        """Row `r` over the whole vocabulary, as shaped so far."""
        if self.whole[r, 0]:
            row = np.full(self.rows.shape[1], -np.inf)
            row[self.ids[r]] = self.values[r]
            return row
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray((self.rows[r] - self.shift[r]) / self.divisor[r])
