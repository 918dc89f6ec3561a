"""Shapes rows of raw logits by their rules. It knows no jobs and no text."""
from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from math import inf
from typing import Protocol

import numpy as np

from unspool.kernels.reading.facts import BEST, FAULT, PEAK
from unspool.kernels.reading.logits import Compiled, Logits, logits_of
from unspool.kernels.reading.plain import Floats
from unspool.kernels.shaping.shaped import NOTHING, Left, Shaped, Task
from unspool.rules.plain import Defined, Seat, define
from unspool.rules.recipe import recipe_of
from unspool.rules.rule import KINDS, names_of

BEST_ALONE = ("greedy",)


class Group(Protocol):
    """What the rules left of several rows; a row is named by its place among them."""

    def empty(self, i: int) -> bool:
        """No token is left."""
        ...
    def left(self, i: int) -> Left: ...
    def pick(self, i: int) -> tuple[int, float]:
        """The token that the noise of its place chooses, and its log-probability."""
        ...
    def processed(self, i: int, token: int) -> float:
        """The log-probability of a token; -inf if it was removed."""
        ...
    def top(self, i: int, count: int) -> list[tuple[int, float]]:
        """The likeliest tokens with their log-probabilities, best first, ties by the lower id."""
        ...


Placed = tuple[Group, int]  # a row, by its place in its group


class Best:
    """The likeliest token of each row: nothing to shape, nothing to draw."""

    def __init__(self, logits: Logits, members: Sequence[int]) -> None:
        self.facts = [logits.facts[r] for r in members]

    def empty(self, i: int) -> bool:
        return bool(self.facts[i][FAULT])

    def left(self, i: int) -> Left:
        if self.empty(i):
            return NOTHING
        peak = self.facts[i][PEAK]
        return Left(np.array([self.pick(i)[0]], np.int64), np.array([peak]), peak)

    def pick(self, i: int) -> tuple[int, float]:
        return int(self.facts[i][BEST]), 0.0

    def processed(self, i: int, token: int) -> float:
        return 0.0 if token == self.facts[i][BEST] else -inf

    def top(self, i: int, count: int) -> list[tuple[int, float]]:
        return [self.pick(i)][:count]


def shape(logits: Logits, members: Sequence[int], seats: Sequence[Seat]) -> list[Placed]:
    """The rows named by `members`, each by its seat. Rows that need the same treatment share it,
    and what becomes of a row never depends on its company."""
    out: dict[int, Placed] = {}

    def treat(which: list[int]) -> None:
        group = treated(logits, [members[i] for i in which], [seats[i] for i in which])
        out.update({i: (group, place) for place, i in enumerate(which)})

    fast = isinstance(logits, Compiled)
    kinds = [treatment(names_of(seat.rules), fast) for seat in seats]
    for kind, same in groupby(sorted(range(len(seats)), key=kinds.__getitem__), kinds.__getitem__):
        which = list(same)
        for own in [[i] for i in which] if kind == "alone" else [which]:
            treat(own)
    return [out[i] for i in range(len(seats))]


@lru_cache(maxsize=1024)
def treatment(names: tuple[str, ...], fast: bool) -> str:
    """Rows with the same answer are shaped together. `fast`: there are kernels for them."""
    if names == BEST_ALONE:
        return "best"
    if not fast:
        return " ".join(["by definition", *names])
    return "alone" if defined_only(names) else "compiled"


@lru_cache(maxsize=1024)
def defined_only(names: tuple[str, ...]) -> bool:
    """Whether some of these rules have only a definition, as functions of a caller's own have."""
    return any(KINDS[name].operation is None for name in names)


def treated(logits: Logits, members: Sequence[int], seats: Sequence[Seat]) -> Group:
    names = names_of(seats[0].rules)
    if names == BEST_ALONE:
        return Best(logits, members)
    if not isinstance(logits, Compiled):
        return Defined(logits.wide(members), seats)
    if not defined_only(names):
        return compiled(logits, members, seats)
    return in_parts(logits, members[0], seats[0])


def compiled(logits: Compiled, members: Sequence[int], seats: Sequence[Seat]) -> Shaped:
    recipes = [recipe_of(seat.rules) for seat in seats]
    return Shaped(logits, members, [
        Task(recipe.address, recipe.states(seat.states), seat.history, seat.place, seat.wanted)
        for recipe, seat in zip(recipes, seats, strict=True)])


def in_parts(logits: Compiled, member: int, seat: Seat) -> Group:
    """A row some of whose rules have only a definition: what lies between them is compiled."""
    rows: Compiled = logits
    done = 0
    for place, rule in enumerate(seat.rules):
        if rule.kind.operation is not None:
            continue
        values = dense(compiled(rows, [member], [part(seat, done, place)]), logits.values.shape[1])
        with np.errstate(over="ignore"):  # a value too low for a float32 has no chance
            values = define(values, place, [seat]).astype(np.float32)
        rows, member, done = logits_of(values), 0, place + 1  # type: ignore[assignment]
    return compiled(rows, [member], [part(seat, done, len(seat.rules), seat.wanted)])


def part(seat: Seat, first: int, last: int, wanted: bool = False) -> Seat:
    """The same row with some of its rules."""
    own = slice(first, last)
    return Seat(seat.rules[own], seat.states[own], seat.history, seat.place, wanted)


def dense(group: Group, vocab: int) -> Floats:
    """[1, V]: the only row of a group, whole."""
    left, out = group.left(0), np.full((1, vocab), -inf)
    out[0, left.ids] = left.values
    return out


def shaped(logits: Logits, member: int, seat: Seat) -> Placed:
    """One row."""
    return shape(logits, [member], [seat])[0]
