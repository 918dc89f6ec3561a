"""Shapes rows of raw logits by their rules, batched by recipe. It knows no jobs and no text."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.engine.shaped import Best, Group, Kept, Left, Whole
from unspool.kernels.reading.head import TOP, Head
from unspool.kernels.reading.logits import Logits, logits_of
from unspool.kernels.reading.plain import Floats, Plain
from unspool.rules import KINDS, RuleValue, columns

GROWTH = 16  # a head that was too small is made so many times larger
Recipe = tuple[RuleValue, ...]
States = tuple[object, ...]
Shaped = tuple[Group, int]  # a row, by its place in its group


def shape(rows: NDArray[Any], recipes: Sequence[Recipe], states: Sequence[States],
          top: int = TOP) -> list[Left]:
    """What the rules leave of each of `rows` [R, V]; all of it, and at once."""
    shaped = shape_rows(logits_of(rows), range(len(rows)), recipes, states, top)
    return [group.left(i) for group, i in shaped]


def shape_rows(logits: Logits, members: Sequence[int], recipes: Sequence[Recipe],
               states: Sequence[States], top: int = TOP) -> list[Shaped]:
    """The rows named by `members`, a recipe and a tuple of rule states for each.

    `top`: how many tokens a head holds at first; it changes the time and never the result.
    """
    out: dict[int, Shaped] = {}
    alike: dict[tuple[str, ...], list[int]] = {}
    for i, recipe in enumerate(recipes):
        alike.setdefault(tuple([rule.name for rule in recipe]), []).append(i)
    for names, own in alike.items():
        rows, theirs = [members[i] for i in own], [recipes[i] for i in own]
        if names == ("greedy",):
            found = placed(Best(logits, rows), len(rows))
        elif names == ():
            found = placed(Whole(logits, rows), len(rows))
        elif names == ("temperature",):
            divisors = np.array([recipe[0].numbers[0] for recipe in theirs])
            found = placed(Whole(logits, rows, divisors), len(rows))
        else:
            found = apply(logits, rows, theirs, [states[i] for i in own], top)
        out.update(zip(own, found, strict=True))
    return [out[i] for i in range(len(recipes))]


def apply(logits: Logits, members: Sequence[int], recipes: list[Recipe], states: list[States],
          top: int) -> list[Shaped]:
    """Rows whose recipes have the same names in the same order.

    Rows for which the head is too small are shaped again with a larger one, so what becomes of a
    row never depends on its company.
    """
    group, short = run(logits, members, recipes, states, top)
    done = placed(group, len(members))
    again = np.flatnonzero(short).tolist()
    if again:
        larger = min(GROWTH * top, logits.values.shape[1])
        better = apply(logits, [members[i] for i in again], [recipes[i] for i in again],
                       [states[i] for i in again], larger)
        for i, shaped in zip(again, better, strict=True):
            done[i] = shaped
    return done


def run(logits: Logits, members: Sequence[int], recipes: list[Recipe], states: list[States],
        top: int) -> tuple[Kept, NDArray[np.bool_]]:
    """Apply the rules in order, their numbers as columns. Also says for which rows a head was too
    small; what is left of those does not count."""
    head: Head | None = None
    short = np.zeros(len(members), np.bool_)
    for place, name in enumerate(rule.name for rule in recipes[0]):
        kind = KINDS[name]
        numbers = columns([recipe[place] for recipe in recipes])
        if kind.reads == "row":
            rows = logits.wide(members) if head is None else head.all()
            rows = kind.apply(rows, [state[place] for state in states], *numbers)
            logits, members, head = Plain(np.asarray(rows, np.float64)), range(len(rows)), None
            continue
        head = Head(logits, members, top) if head is None else head
        kind.apply(head, *numbers)
        short |= head.short
    return kept_rows(logits.wide(members)) if head is None else kept(head), short


def placed(group: Group, count: int) -> list[Shaped]:
    return [(group, i) for i in range(count)]


def kept(head: Head) -> Kept:
    """What a head still holds, by value; of a row that lost nothing everything, by id."""
    if not head.whole.all():  # then none is
        return kept_rows(head.all())
    left = np.isfinite(head.values)
    return Kept(head.ids[left], head.values[left], left.sum(-1))


def kept_rows(rows: Floats) -> Kept:
    """The tokens that shaped rows [R, V] still hold, by id."""
    left = np.isfinite(rows)
    return Kept(np.nonzero(left)[1], rows[left], left.sum(-1))
