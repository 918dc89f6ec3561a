"""Reads slots from rows: the pick, the draft's token, the likeliest, each with its true facts.

The slots of a draft are read depth by depth, since what a rule remembers at a slot depends on the
draft's tokens before it. All rows of one depth are read together.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unspool.core.branch import Branch
from unspool.core.errors import RowError
from unspool.core.job import Job
from unspool.core.prefix import Candidate
from unspool.core.slot import Slot
from unspool.core.sockets import Rule
from unspool.engine.shape import Recipe, shape_rows
from unspool.engine.shaped import Group, Left
from unspool.kernels.reading.facts import BEST, FAULT, NORM, PEAK
from unspool.kernels.reading.logits import Logits
from unspool.kernels.reading.noise import Place
from unspool.kernels.reading.philox import draw
from unspool.kernels.reading.plain import Floats

SEED, WORD = 2**64 - 1, 2**32 - 1  # bits of a place that noise depends on
DAMAGED = ("the model gave NaN, infinity or no score at all; the weights or the prompt's keys are "
           "damaged, nothing can be chosen")
EMPTY = "no token is left: the rules removed every one; loosen one of them"

States = tuple[object, ...]
Others = tuple[tuple[int, float], ...]
Pick = tuple[int, float | None]


@dataclass(slots=True, eq=False)
class Open:
    """A branch and its rows of raw logits: `count` of the forward's, from `first` on, one per slot.
    """

    job: Job
    branch: Branch
    first: int
    count: int


@dataclass(slots=True, eq=False)
class Row:
    """Row `number` of a forward, before and after the rules: row `place` of `group`."""

    logits: Logits
    number: int
    group: Group
    place: int

    @property
    def vocab(self) -> int:
        return int(self.logits.values.shape[1])

    @property
    def raw(self) -> Floats:
        """[V]: the model's logits."""
        [row] = self.logits.wide([self.number])
        return np.asarray(row)

    @property
    def norm(self) -> float:
        """Log of the raw row's summed exp."""
        return self.logits.facts[self.number][NORM]

    @property
    def shaped(self) -> Left:
        return self.group.left(self.place)

    def candidate(self, token: int) -> Candidate:
        self.expect(token)
        return candidates(self.logits, [Ask(self, token)])[0]

    def expect(self, token: int) -> None:
        """Raises IndexError for an id outside the vocabulary."""
        if not 0 <= token < self.vocab:
            raise IndexError(f"token {token} is outside the vocabulary")

    def likeliest(self, count: int) -> Others:
        """The first `count` tokens before the rules, with their raw log-probabilities."""
        ids, values = self.logits.top([self.number], count)
        logprobs = values[0] - self.norm
        return tuple(zip(ids[0].tolist(), logprobs.tolist(), strict=True))

    def alone(self) -> Row:
        """A copy that outlives the forward."""
        logits = self.logits.alone(self.number)
        return Row(logits, 0, self.group.alone(self.place, logits), 0)


@dataclass(slots=True, eq=False)
class Ask:
    """A token whose facts are wanted. `processed`: its log-probability after the rules, if known.
    """

    row: Row
    token: int
    processed: float | None = None
    others: Others = ()


def read(logits: Logits, opens: Sequence[Open]) -> dict[Branch, list[Slot] | Exception]:
    """The slots of every branch, or what was wrong with its first row.

    What is wrong further down a draft ends the reading there: it may stand behind a wrong guess,
    and if it does not, the next step meets it in the first row.
    """
    slots: dict[Branch, list[Slot]] = {o.branch: [] for o in opens}
    states = {o.branch: o.branch.states for o in opens}
    faults: dict[Branch, Exception] = {}
    for depth in range(max((o.count for o in opens), default=0)):
        deep = [o for o in opens if depth < o.count and o.branch not in faults]
        for o, slot in zip(deep, slots_at(logits, deep, depth, states), strict=True):
            try:
                if isinstance(slot, Exception):
                    raise slot
                slots[o.branch].append(slot)
                if slot.drafted is not None:
                    states[o.branch] = after(o.job.request.rules, states[o.branch], slot.drafted)
            except Exception as error:  # of a job's rule or draft: its own
                faults[o.branch] = error
    return {branch: mine or faults[branch] for branch, mine in slots.items()}


def after(rules: Sequence[Rule], states: States, drafted: Candidate) -> States:
    """What the rules remember behind a token of the draft, as if it were settled."""
    return tuple(rule.after(state, drafted.token, drafted)
                 for rule, state in zip(rules, states, strict=True))


def slots_at(logits: Logits, opens: list[Open], depth: int,
             states: dict[Branch, States]) -> list[Slot | Exception]:
    """The slots of one depth. What is wrong with one job's leaves the others alone."""
    rows = rows_at(logits, opens, depth, states)
    picked = picks(opens, rows, depth)
    asks: list[Ask] = []
    ends: list[int | Exception] = []
    for o, row, pick in zip(opens, rows, picked, strict=True):
        try:
            if isinstance(row, Exception):
                raise row
            asks += asked(o, row, depth, pick)
            ends.append(len(asks))
        except Exception as error:  # of a job's strategy or draft
            ends.append(error)
    facts, at = candidates(logits, asks), 0
    out: list[Slot | Exception] = []
    for o, row, end in zip(opens, rows, ends, strict=True):
        if isinstance(row, Row) and not isinstance(end, Exception):
            out.append(slot_of(o, row, depth, facts[at:end]))
            at = end
        elif isinstance(end, Exception):
            out.append(end)
    return out


def rows_at(logits: Logits, opens: list[Open], depth: int,
            states: dict[Branch, States]) -> list[Row | Exception]:
    """The rows of one depth, shaped together; a fault in one job's rule leaves the others alone."""
    faults = {o.branch for o in opens if logits.facts[o.first + depth][FAULT]}
    sound = [o for o in opens if o.branch not in faults] if faults else opens
    members = [o.first + depth for o in sound]
    recipes: list[Recipe] = [o.job.request.rules for o in sound]  # type: ignore[misc]
    try:
        shaped = shape_rows(logits, members, recipes, [states[o.branch] for o in sound])
    except Exception as error:  # a job's rule may raise anything
        if len(opens) == 1:
            return [error]
        return [row for o in opens for row in rows_at(logits, [o], depth, states)]
    rows = iter([finish(Row(logits, r, *s)) for r, s in zip(members, shaped, strict=True)])
    return [RowError(DAMAGED) if o.branch in faults else next(rows) for o in opens]


def finish(row: Row) -> Row | RowError:
    return RowError(EMPTY) if row.group.empty(row.place) else row


def picks(opens: list[Open], rows: list[Row | Exception], depth: int) -> list[Pick | None]:
    """A pick of each row whose strategy wants one, drawn group by group."""
    out: list[Pick | None] = [None] * len(rows)
    groups: dict[Group, list[int]] = {}
    for i, (o, row) in enumerate(zip(opens, rows, strict=True)):
        try:
            if isinstance(row, Row) and o.job.strategy.reads.pick:
                groups.setdefault(row.group, []).append(i)
        except Exception as error:  # of a job's strategy
            rows[i] = error
    for group, own in groups.items():
        places = [place_of(opens[i], depth) for i in own]
        drawn = group.picks([rows[i].place for i in own], places)  # type: ignore[union-attr]
        for i, pick in zip(own, drawn, strict=True):
            out[i] = pick
    return out


def place_of(o: Open, depth: int) -> Place:
    """Where the noise of a pick comes from."""
    branch = o.branch
    return (o.job.request.seed & SEED, branch.choice & WORD, branch.settled.length + depth,
            draw("pick", branch.replaced))


def asked(o: Open, row: Row, depth: int, pick: Pick | None) -> list[Ask]:
    """What a slot wants to know: of its pick, its draft's token and of the likeliest, in order."""
    request, draft = o.job.request, o.branch.draft
    top = request.strategy.reads.top
    others = row.likeliest(request.others) if request.others else ()
    likeliest = row.group.top(row.place, top or 1) if top or pick is None else []
    out = [Ask(row, *(pick or (likeliest[0], None)), others)]
    if depth < len(draft):
        row.expect(draft[depth])
        out.append(Ask(row, draft[depth], None, others))
    return out + [Ask(row, token, None, others) for token in likeliest[:top]]


def candidates(logits: Logits, asks: Sequence[Ask]) -> list[Candidate]:
    """The facts of all these tokens."""
    table = logits.facts
    more = [ask for ask in asks if ask.token != table[ask.row.number][BEST]]
    looked = iter(logits.look([a.row.number for a in more], [a.token for a in more])
                  if more else ())
    out = []
    for ask in asks:
        row, token, processed = ask.row, ask.token, ask.processed
        facts = table[row.number]
        logit, rank = (facts[PEAK], 1) if token == facts[BEST] else next(looked)
        if processed is None:
            processed = row.group.processed(row.place, token, logit)
        norm = facts[NORM]
        out.append(Candidate(token, logit - norm, processed, int(rank), facts[PEAK] - norm,
                             ask.others))
    return out


def slot_of(o: Open, row: Row, depth: int, facts: list[Candidate]) -> Slot:
    drafted = depth < len(o.branch.draft)
    return Slot(facts[0], facts[1] if drafted else None, tuple(facts[1 + drafted:]),
                row.alone() if o.job.request.keep_rows else None)
