"""Reads slots from rows: the pick, the draft's token, the likeliest, each with its true facts.

The slots of a draft are read depth by depth, since what a rule remembers at a slot depends on the
draft's tokens before it.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from unspool.core.branch import Branch
from unspool.core.errors import RowError
from unspool.core.job import Job
from unspool.core.prefix import Candidate
from unspool.core.slot import Slot
from unspool.core.sockets import Rule
from unspool.engine.shape import Recipe, Shaped, shape
from unspool.kernels.head import Floats, log_sum_exp, top_ids
from unspool.kernels.philox import draw, gumbel


@dataclass(slots=True, eq=False)
class Open:
    """A branch and its rows of raw logits, one per slot."""

    job: Job
    branch: Branch
    rows: Any  # [slots, V]


RANKED = 64


@dataclass(eq=False)
class Row:
    """One row before and after the rules."""

    raw: Floats
    shaped: Shaped
    norm: float  # log of the raw row's summed exp
    shaped_norm: float
    others: tuple[tuple[int, float], ...] = ()

    @cached_property
    def first(self) -> dict[int, int]:
        """Ranks of the likeliest tokens before the rules; most tokens asked for are among them."""
        return {int(i): rank for rank, i in enumerate(top_ids(self.raw, RANKED), 1)}

    def rank(self, token: int) -> int:
        """1 is the likeliest token; of equal ones the lower id comes first."""
        if token in self.first:
            return self.first[token]
        value = self.raw[token]
        return 1 + int((self.raw > value).sum()) + int((self.raw[:token] == value).sum())

    def processed(self, token: int) -> float:
        where = self.shaped.find(token)
        return -math.inf if where is None else float(self.shaped.values[where] - self.shaped_norm)

    def candidate(self, token: int) -> Candidate:
        peak = float(self.raw[next(iter(self.first))] - self.norm)
        return Candidate(token, float(self.raw[token] - self.norm), self.processed(token),
                         self.rank(token), peak, self.others)

    def likeliest(self, count: int) -> tuple[tuple[int, float], ...]:
        """The first `count` tokens before the rules, with their raw log-probabilities."""
        ids = top_ids(self.raw, count) if count else ()
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


def host(rows: Any) -> Any:
    """Rows as a numpy array; those of a GPU are copied, since the rules run on the CPU so far."""
    return rows if isinstance(rows, np.ndarray) else rows.cpu().numpy()


def read(opens: Sequence[Open]) -> dict[Branch, list[Slot] | Exception]:
    """The slots of every branch, or what was wrong with its first row.

    What is wrong further down a draft ends the reading there: it may stand behind a wrong guess,
    and if it does not, the next step meets it in the first row.
    """
    slots: dict[Branch, list[Slot]] = {o.branch: [] for o in opens}
    states = {o.branch: o.branch.states for o in opens}
    faults: dict[Branch, Exception] = {}
    for depth in range(max((len(o.rows) for o in opens), default=0)):
        deep = [o for o in opens if depth < len(o.rows) and o.branch not in faults]
        found = ((o.branch, check(o.rows[depth])) for o in deep)
        faults.update({branch: fault for branch, fault in found if fault is not None})
        deep = [o for o in deep if o.branch not in faults]
        for o, row in zip(deep, rows_at(deep, depth, states), strict=True):
            try:
                if isinstance(row, Exception):
                    raise row
                slot = slot_of(o, row, depth)
                slots[o.branch].append(slot)
                if slot.drafted is not None:
                    states[o.branch] = after(o.job.request.rules, states[o.branch], slot.drafted)
            except Exception as error:  # of a job's rule or draft: its own
                faults[o.branch] = error
    return {branch: mine or faults[branch] for branch, mine in slots.items()}


def after(rules: Sequence[Rule], states: tuple[object, ...],
          drafted: Candidate) -> tuple[object, ...]:
    """What the rules remember behind a token of the draft, as if it were settled."""
    return tuple(rule.after(state, drafted.token, drafted)
                 for rule, state in zip(rules, states, strict=True))


def check(row: Any) -> RowError | None:
    """A row that cannot be a distribution is an error of its request, never a random token."""
    if not np.isfinite(np.max(row)):  # NaN and infinity outlive a maximum
        return RowError("the model gave NaN, infinity or no score at all; the weights or the "
                        "prompt's keys are damaged, nothing can be chosen")
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
    reads = request.strategy.reads
    row.others = row.likeliest(request.others)
    slot = Slot(row.pick(o.branch, depth, request.seed) if reads.pick else row.top(1)[0])
    if depth < len(draft):
        slot.drafted = row.candidate(draft[depth])
    if reads.top:
        slot.top = row.top(reads.top)
    if request.keep_rows:
        slot.row = row
    return slot
