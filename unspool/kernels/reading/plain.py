"""Rows of logits in numpy and float64: plain, and the oracle of the compiled kernels.

`Plain` has the interface of `logits.Logits`, which says what each answer is.
"""
from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.kernels.reading.facts import BEST, ENTROPY, FAULT, NORM, PEAK, TABLE

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
Members = Sequence[int] | Ids


class Plain:
    """Rows in float64."""

    def __init__(self, values: Floats) -> None:
        self.values = values

    @cached_property
    def facts(self) -> list[list[float]]:
        return self.table.tolist()

    @cached_property
    def table(self) -> Floats:
        table = np.zeros((len(self.values), TABLE))
        with np.errstate(invalid="ignore"):  # a row that is no distribution has other facts: none
            peak = self.values.max(-1)
            norm = log_sum_exp(self.values)[:, 0]
            share = np.exp(self.values - norm[:, None])
            weighted = np.where(share > 0, share * (self.values - norm[:, None]), 0.0)
        table[:, PEAK], table[:, NORM], table[:, ENTROPY] = peak, norm, -weighted.sum(-1)
        table[:, BEST] = self.values.argmax(-1)
        table[:, FAULT] = ~np.isfinite(peak)  # NaN and infinity outlive a maximum
        return table

    def top(self, members: Members, count: int) -> tuple[Ids, Floats]:
        ids = np.stack([top_ids(self.values[r], count) for r in members])
        return ids, np.take_along_axis(self.values[np.asarray(members)], ids, -1)

    def look(self, members: Members, tokens: Sequence[int]) -> list[list[float]]:
        out = []
        for r, token in zip(members, tokens, strict=True):
            row, value = self.values[r], self.values[r, token]
            rank = 1 + int((row > value).sum()) + int((row[:token] == value).sum())
            out.append([float(value), rank])
        return out

    def wide(self, members: Members) -> Floats:
        return np.asarray(self.values[np.asarray(members)])

    def alone(self, row: int) -> Plain:
        return Plain(self.values[row:row + 1].copy())


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
