"""Shapes rows of raw logits by their rules, batched by recipe. It knows no jobs and no text."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unspool.kernels.head import TOP, BeyondHead, Floats, Head, log_sum_exp
from unspool.rules import KINDS, RuleValue, columns

Recipe = tuple[RuleValue, ...]


@dataclass(slots=True, eq=False)
class Shaped:
    """What the rules left of one row: `ids` [K] and their logits `values` [K], all finite.

    `sorted`: the ids ascend; otherwise the values descend.
    """

    ids: NDArray[np.int64]
    values: Floats
    sorted: bool = False

    def find(self, token: int) -> int | None:
        """Where the token is, None when it was removed."""
        if self.sorted:
            at = int(np.searchsorted(self.ids, token))
            return at if at < len(self.ids) and self.ids[at] == token else None
        found = np.flatnonzero(self.ids == token)
        return int(found[0]) if len(found) else None

    @property
    def norm(self) -> float:
        return float(log_sum_exp(self.values)[0])


def shape(rows: Floats, recipes: Sequence[Recipe],
          states: Sequence[tuple[object, ...]], top: int = TOP) -> list[Shaped]:
    """`rows` [R, V] float64 raw logits, a recipe and a tuple of rule states for each.

    `top`: how many tokens a head holds; it changes the time and never the result.
    """
    out: dict[int, Shaped] = {}
    alike: dict[tuple[str, ...], list[int]] = {}
    for i, recipe in enumerate(recipes):
        alike.setdefault(tuple(rule.name for rule in recipe), []).append(i)
    for members in alike.values():
        result = shape_alike(rows[members], [recipes[i] for i in members],
                             [states[i] for i in members], top)
        out.update(zip(members, result, strict=True))
    return [out[i] for i in range(len(recipes))]


def shape_alike(rows: Floats, recipes: list[Recipe], states: list[tuple[object, ...]],
                top: int) -> list[Shaped]:
    """Rows whose recipes have the same names in the same order: the numbers become columns."""
    head: Head | None = None
    for place, name in enumerate(rule.name for rule in recipes[0]):
        kind = KINDS[name]
        numbers = columns([recipe[place] for recipe in recipes])
        if kind.reads == "row":
            rows, head = rows if head is None else head.all(), None
            rows = kind.apply(rows, [state[place] for state in states], *numbers)
            continue
        head = Head(rows, top) if head is None else head
        try:
            kind.apply(head, *numbers)
        except BeyondHead:
            head = head.widened()
            kind.apply(head, *numbers)
    return [left(rows[r]) if head is None else left_of(head, r) for r in range(len(rows))]


def left_of(head: Head, r: int) -> Shaped:
    if not head.whole[r, 0]:
        return left(head.full(r))
    kept = np.isfinite(head.values[r])
    return Shaped(head.ids[r][kept], head.values[r][kept])


def left(row: Floats) -> Shaped:
    """The tokens that a shaped row [V] still holds, by id."""
    ids = np.flatnonzero(np.isfinite(row))
    return Shaped(ids, row[ids], sorted=True)
