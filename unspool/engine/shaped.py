"""What the rules left of the rows of one recipe: one likeliest token, whole rows, or a few tokens.

Each kind answers with as little work as it can, and nothing is computed that nobody asks for.
A row is named by its place in the group.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite
from typing import Protocol

import numpy as np

from unspool.kernels.reading.draw import race_of
from unspool.kernels.reading.facts import BEST, FAULT, NORM, PEAK
from unspool.kernels.reading.logits import Logits
from unspool.kernels.reading.noise import Place
from unspool.kernels.reading.plain import Floats, Ids, log_sum_exp, top_ids

Picks = list[tuple[int, float | None]]  # token, and its log-probability where it is known already


@dataclass(frozen=True, slots=True, eq=False)
class Left:
    """What is left of one row: `ids` [K] and their logits `values` [K], all finite.

    The ids ascend, or the values descend.
    """

    ids: Ids
    values: Floats

    @property
    def norm(self) -> float:
        return float(log_sum_exp(self.values)[0])


class Group(Protocol):
    def empty(self, i: int) -> bool:
        """No token is left."""
        ...
    def left(self, i: int) -> Left: ...
    def picks(self, which: Sequence[int], places: Sequence[Place]) -> Picks:
        """A draw from each of these rows, with the noise of its place."""
        ...
    def processed(self, i: int, token: int, logit: float) -> float:
        """The log-probability of a token whose raw logit is given; -inf if it was removed."""
        ...
    def top(self, i: int, count: int) -> list[int]:
        """The likeliest tokens, best first, ties by the lower id."""
        ...
    def alone(self, i: int, logits: Logits) -> Group:
        """The same of one row, whose raw logits are given; it outlives the forward."""
        ...


class Best:
    """The likeliest token of each row: nothing to draw."""

    def __init__(self, logits: Logits, members: Sequence[int]) -> None:
        self.facts = [logits.facts[r] for r in members]

    def empty(self, i: int) -> bool:
        return bool(self.facts[i][FAULT])

    def left(self, i: int) -> Left:
        values = [] if self.empty(i) else [self.facts[i][PEAK]]
        return Left(np.array(self.top(i, len(values)), np.int64), np.array(values))

    def picks(self, which: Sequence[int], places: Sequence[Place]) -> Picks:
        return [(int(self.facts[i][BEST]), 0.0) for i in which]

    def processed(self, i: int, token: int, logit: float) -> float:
        return 0.0 if token == self.facts[i][BEST] else -inf

    def top(self, i: int, count: int) -> list[int]:
        return [int(self.facts[i][BEST])][:count]

    def alone(self, i: int, logits: Logits) -> Best:
        return Best(logits, [0])


class Whole:
    """Rows that lost nothing, each divided by a temperature, or by none."""

    def __init__(self, logits: Logits, members: Sequence[int],
                 divisors: Floats | None = None) -> None:
        self.logits, self.members, self.divisors = logits, members, divisors
        self.norms: dict[int, float] = {}  # log of the summed exp of the divided row

    def empty(self, i: int) -> bool:
        return bool(self.logits.facts[self.members[i]][FAULT])

    def left(self, i: int) -> Left:
        [row] = self.logits.wide([self.members[i]])
        ids = np.flatnonzero(np.isfinite(row))
        return Left(ids, self.divided(i, row[ids]))

    def divided(self, i: int, logits: Floats) -> Floats:
        if self.divisors is None:
            return logits
        with np.errstate(over="ignore"):
            peak = self.logits.facts[self.members[i]][PEAK]
            return np.asarray((logits - peak) / self.divisors[i])

    def picks(self, which: Sequence[int], places: Sequence[Place]) -> Picks:
        drawn = self.draw(which, places).tolist()
        return [(int(token), None) for token, _ in drawn]

    def draw(self, which: Sequence[int], places: Sequence[Place] | None) -> Floats:
        divisors = np.ones(len(which)) if self.divisors is None else self.divisors[which]
        drawn = self.logits.draw([self.members[i] for i in which], divisors, places)
        self.norms.update(zip(which, drawn[:, 1].tolist(), strict=True))
        return drawn

    def processed(self, i: int, token: int, logit: float) -> float:
        facts = self.logits.facts[self.members[i]]
        if not isfinite(logit):
            return -inf
        if self.divisors is None:
            return logit - facts[NORM]
        if i not in self.norms:
            self.draw([i], None)
        return float((logit - facts[PEAK]) / self.divisors[i]) - self.norms[i]

    def top(self, i: int, count: int) -> list[int]:
        ids, values = self.logits.top([self.members[i]], count)
        return ids[0][np.isfinite(self.divided(i, values[0]))].tolist()  # type: ignore[no-any-return]

    def alone(self, i: int, logits: Logits) -> Whole:
        return Whole(logits, [0], None if self.divisors is None else self.divisors[[i]])


class Kept:
    """The tokens that cuts left of each row, in lists that lie one after the other."""

    def __init__(self, ids: Ids, values: Floats, sizes: Ids) -> None:
        """`ids`, `values` [all that is left]: of each row what `Left` says; `sizes` [R]."""
        self.ids, self.values = ids, values
        ends = np.cumsum(sizes)
        self.lists = np.stack([ends - sizes, ends], -1)

    @cached_property
    def norms(self) -> list[float]:
        norms: list[float] = race_of(self.lists, self.ids, self.values, None)[:, 1].tolist()
        return norms

    def empty(self, i: int) -> bool:
        first, last = self.lists[i]
        return bool(first == last)

    def left(self, i: int) -> Left:
        own = slice(*self.lists[i])
        return Left(self.ids[own], self.values[own])

    def picks(self, which: Sequence[int], places: Sequence[Place]) -> Picks:
        lists = self.lists[which]
        found = race_of(lists, self.ids, self.values, places)
        at = lists[:, 0] + found[:, 0].astype(np.int64)
        processed = self.values[at] - found[:, 1]
        return list(zip(self.ids[at].tolist(), processed.tolist(), strict=True))

    def processed(self, i: int, token: int, logit: float) -> float:
        left = self.left(i)
        at = np.flatnonzero(left.ids == token)
        return float(left.values[at[0]]) - self.norms[i] if len(at) else -inf

    def top(self, i: int, count: int) -> list[int]:
        left = self.left(i)
        few = len(left.ids) <= 4 * count
        order = np.lexsort((left.ids, -left.values)) if few else top_ids(left.values, count)
        return left.ids[order[:count]].tolist()  # type: ignore[no-any-return]

    def alone(self, i: int, logits: Logits) -> Kept:
        left = self.left(i)
        return Kept(left.ids.copy(), left.values.copy(), np.array([len(left.ids)]))
