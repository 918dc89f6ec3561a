"""Reads slots from rows: the pick, the draft's token, the likeliest, each with its true facts.

The slots of a draft are read depth by depth, since what a rule remembers at a slot depends on the
draft's tokens before it.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unspool.core.branch import Branch
from unspool.core.errors import RowError
from unspool.core.job import Job
from unspool.core.prefix import Candidate
from unspool.core.slot import Slot
from unspool.engine.shape import Recipe, Shaped, shape
from unspool.kernels.head import Floats, log_sum_exp, top_ids
from unspool.kernels.philox import draw, gumbel


@dataclass(slots=True, eq=False)
class Open:
    """A branch and its rows of raw logits, one per slot."""

    job: Job
    branch: Branch
    rows: Any  # [slots, V]


@dataclass(slots=True, eq=False)
class Row:
    """One row before and after the rules."""

    raw: Floats
    shaped: Shaped
    norm: float  # log of the raw row's summed exp
    shaped_norm: float
    others: tuple[tuple[int, float], ...] = ()

    def candidate(self, token: int) -> Candidate:
        """Rank 1 is the likeliest token; of equal ones the lower id comes first."""
        value = self.raw[token]
        rank = 1 + int((self.raw > value).sum()) + int((self.raw[:token] == value).sum())
        where = np.flatnonzero(self.shaped.ids == token)
        processed = self.shaped.values[where[0]] - self.shaped_norm if len(where) else -np.inf
        return Candidate(token, float(value - self.norm), float(processed), rank,
                         float(self.raw.max() - self.norm), self.others)

    def likeliest(self, count: int) -> tuple[tuple[int, float], ...]:
        """The first `count` tokens before the rules, with their raw log-probabilities."""
        ids = top_ids(self.raw, min(count, len(self.raw))) if count else ()
        return tuple((int(i), float(self.raw[i] - self.norm)) for i in ids)

    def pick(self, branch: Branch, depth: int, seed: int) -> Candidate:
        """Gumbel-max: the argmax of shaped logits plus noise is a draw from their softmax."""
        shaped = self.shaped
        if len(shaped.ids) == 1:
            return self.candidate(int(shaped.ids[0]))
        noise = gumbel(seed, branch.choice, branch.settled.length + depth,
                       draw("pick", branch.replaced), shaped.ids)
        return self.candidate(int(shaped.ids[np.argmax(shaped.values + noise)]))

    def top(self, count: int) -> list[Candidate]:
        """The likeliest after the rules. Ids ascend among equals, so ties go to the lowest."""
        order = np.lexsort((self.shaped.ids, -self.shaped.values)) if len(
            self.shaped.ids) <= 4 * count else top_ids(self.shaped.values, count)
        return [self.candidate(int(self.shaped.ids[i])) for i in order[:count]]


def read(opens: Sequence[Open]) -> dict[Branch, list[Slot] | Exception]:
    """The slots of every branch, or what was wrong with its rows."""
    slots: dict[Branch, list[Slot] | Exception] = {o.branch: [] for o in opens}
    states = {o.branch: o.branch.states for o in opens}
    for depth in range(max((len(o.rows) for o in opens), default=0)):
        deep = []
        for o in opens:
            if depth < len(o.rows) and isinstance(slots[o.branch], list):
                fault = check(o.rows[depth])
                if fault is None:
                    deep.append(o)
                else:
                    slots[o.branch] = fault
        for o, row in zip(deep, rows_at(deep, depth, states), strict=True):
            slot = row if isinstance(row, Exception) else slot_of(o, row, depth)
            mine = slots[o.branch]
            if isinstance(slot, Exception) or isinstance(mine, Exception):
                slots[o.branch] = slot if isinstance(slot, Exception) else mine
                continue
            mine.append(slot)
            if slot.drafted is not None:
                states[o.branch] = tuple(
                    rule.after(state, slot.drafted.token, slot.drafted)
                    for rule, state in zip(o.job.request.rules, states[o.branch], strict=True))
    return slots


def check(row: Any) -> RowError | None:
    """A row that cannot be a distribution is an error of its request, never a random token."""
    if np.isnan(row).any() or np.isposinf(row).any():
        return RowError("the model gave NaN or infinity as a score; the weights or the prompt's "
                        "keys are damaged, nothing can be chosen")
    return None


def rows_at(opens: list[Open], depth: int,
            states: dict[Branch, tuple[object, ...]]) -> list[Row | Exception]:
    """The rows of one depth, shaped together; a fault in one job's rule leaves the others alone."""
    if not opens:
        return []
    raw = np.stack([np.asarray(o.rows[depth], dtype=np.float64) for o in opens])
    recipes: list[Recipe] = [o.job.request.rules for o in opens]  # type: ignore[misc]
    try:
        shaped = shape(raw, recipes, [states[o.branch] for o in opens])
    except Exception as error:  # a job's rule may raise anything
        if len(opens) == 1:
            return [error]
        return [row for o in opens for row in rows_at([o], depth, states)]
    return [finish(r, s) for r, s in zip(raw, shaped, strict=True)]


def finish(raw: Floats, shaped: Shaped) -> Row | RowError:
    if not len(shaped.ids):
        return RowError("no token is left: the rules removed every one; loosen one of them")
    return Row(raw, shaped, float(log_sum_exp(raw)[0]), shaped.norm)


def slot_of(o: Open, row: Row, depth: int) -> Slot:
    request, draft = o.job.request, o.branch.draft
    row.others = row.likeliest(request.others)
    slot = Slot(row.pick(o.branch, depth, request.seed))
    if depth < len(draft):
        slot.drafted = row.candidate(draft[depth])
    if request.strategy.reads.top:
        slot.top = row.top(request.strategy.reads.top)
    if request.keep_rows:
        slot.row = row
    return slot
