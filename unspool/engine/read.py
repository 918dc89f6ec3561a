"""Reads slots from rows: the pick, the draft's token, the likeliest, each with its true facts.

The slots of a draft are read depth by depth, since what a rule remembers at a slot depends on the
draft's tokens before it. All rows of one depth are read together.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from math import inf, log
from typing import Any, NamedTuple

from unspool.core.branch import Branch
from unspool.core.errors import RowError
from unspool.core.history import History
from unspool.core.job import Job
from unspool.core.prefix import Candidate
from unspool.core.slot import PICK, Reading, Slot
from unspool.core.stage import InForce, step_of
from unspool.engine.row import Row
from unspool.engine.runner import Turn
from unspool.engine.scored import repaired
from unspool.engine.shape import defined_only, shape
from unspool.kernels.reading.facts import BEST, ENTROPY, FAULT, NORM, PEAK
from unspool.kernels.reading.logits import Logits
from unspool.kernels.reading.noise import Place
from unspool.kernels.reading.philox import draw
from unspool.rules import RuleValue
from unspool.rules.plain import Seat
from unspool.rules.rule import names_of, place_of_noise

DAMAGED = ("the model gave NaN, infinity or no score at all; the weights or the prompt's keys are "
           "damaged, nothing can be chosen")

Others = tuple[tuple[int, float], ...]


class State(NamedTuple):
    """What the rules of a branch know at one slot: what each remembers, and the text so far."""

    rules: tuple[object, ...]
    history: History | None

    def after(self, force: InForce, step: int, drafted: Candidate) -> State:
        """Behind a token of the draft, as if it were settled."""
        text = self.history
        return State(force.after(self.rules, step, drafted),
                     None if text is None else text.extend(drafted.token))


@dataclass(slots=True, eq=False)
class Open:
    """A branch and its rows of raw logits: `count` of the forward's, from `first` on, one per slot.
    `turn`: what else its forward read there.
    """

    job: Job
    branch: Branch
    first: int
    count: int
    turn: Turn | None = None

    @property
    def reads(self) -> Reading:
        return self.job.strategy.reads


@dataclass(slots=True, eq=False)
class Ask:
    """A token whose facts are wanted. `processed`: its log-probability after the rules."""

    row: Row
    token: int
    processed: float
    others: Others = ()


def read(logits: Logits, opens: Sequence[Open]) -> dict[Branch, list[Slot] | Exception]:
    """The slots of every branch, or what was wrong with its first row.

    What is wrong further down a draft ends the reading there: it may stand behind a wrong guess,
    and if it does not, the next step meets it in the first row.
    """
    logits = repaired(logits, [row for o in opens if o.job.request.repair
                               for row in range(o.first, o.first + o.count)])
    slots: dict[Branch, list[Slot]] = {o.branch: [] for o in opens}
    states = {o.branch: State(o.branch.states, o.branch.history) for o in opens}
    faults: dict[Branch, Exception] = {}
    for depth in range(max((o.count for o in opens), default=0)):
        deep = [o for o in opens if depth < o.count and o.branch not in faults]
        for o, slot in zip(deep, slots_at(logits, deep, depth, states), strict=True):
            try:
                if isinstance(slot, Exception):
                    raise slot
                slots[o.branch].append(slot)
                if slot.drafted is not None:
                    states[o.branch] = states[o.branch].after(
                        o.job.force(o.branch), step_of(o.branch, depth), slot.drafted)
            except Exception as error:  # of a job's rule or draft: its own
                faults[o.branch] = error
    return {branch: mine or faults[branch] for branch, mine in slots.items()}


def slots_at(logits: Logits, opens: list[Open], depth: int,
             states: dict[Branch, State]) -> list[Slot | Exception]:
    """The slots of one depth. What is wrong with one job's leaves the others alone."""
    rows = rows_at(logits, opens, depth, states)
    asks: list[Ask] = []
    ends: list[int | Exception] = []
    for o, row in zip(opens, rows, strict=True):
        try:
            if isinstance(row, Exception):
                raise row
            found = asked(o, row, depth)
            asks += unscaled(row, found) if o.reads.unscaled else found
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
            states: dict[Branch, State]) -> list[Row | Exception]:
    """The rows of one depth, shaped together; a fault in one job's rule leaves the others alone.

    Where a rule is a caller's own function the row is shaped by itself, so that no fault of another
    one has the function called twice.
    """
    own = [o for o in opens if defined_only(names_of(fixed(o)))] if len(opens) > 1 else []
    if own:
        rest = [o for o in opens if o not in own]
        found: dict[Branch, Row | Exception] = {}
        for some in [*([o] for o in own), rest]:
            rows = rows_at(logits, some, depth, states)
            found |= {o.branch: row for o, row in zip(some, rows, strict=True)}
        return [found[o.branch] for o in opens]
    return rows_together(logits, opens, depth, states)


def rows_together(logits: Logits, opens: list[Open], depth: int,
                  states: dict[Branch, State]) -> list[Row | Exception]:
    try:
        out: list[Row | Exception] = []
        seats = [seat_of(o, depth, states[o.branch]) for o in opens]
        members = [o.first + depth for o in opens]
        sound = [i for i, r in enumerate(members) if not logits.facts[r][FAULT]]
        placed = iter(shape(logits, [members[i] for i in sound], [seats[i] for i in sound]))
        for r, seat in zip(members, seats, strict=True):
            if logits.facts[r][FAULT]:
                out.append(RowError(DAMAGED))
                continue
            row = Row(logits, r, seat, next(placed))
            out.append(RowError(row.why_empty()) if row.empty else row)
    except Exception as error:  # a job's rule may raise anything
        if len(opens) == 1:
            return [error]
        return [row for o in opens for row in rows_together(logits, [o], depth, states)]
    return out


def seat_of(o: Open, depth: int, state: State) -> Seat:
    """What shapes a row."""
    force = o.job.force(o.branch)
    rules: Any = fixed(o) if force.steady else force.rules(step_of(o.branch, depth))
    place = place_of_noise(rules, state.history, place_of(o, depth))
    return Seat(rules, force.states(state.rules), state.history, place, o.reads.pick)


def fixed(o: Open) -> tuple[RuleValue, ...]:
    """The rules in force, whose numbers may be schedules."""
    return o.job.force(o.branch).fixed  # type: ignore[return-value]


def place_of(o: Open, depth: int) -> Place:
    """Where the noise of a pick comes from, unless a rule says otherwise."""
    branch = o.branch
    return (o.job.request.seed, branch.choice, branch.settled.length + depth,
            draw("pick", branch.replaced))


def place_of_perturbing(o: Open, depth: int) -> Place:
    """The same for searches that keep several branches of one choice: texts that differ have noise
    of their own."""
    seed, choice, position, _ = place_of(o, depth)
    branch = o.branch
    text = repr([*branch.tokens, *branch.draft[:depth]]).encode()
    own = int.from_bytes(blake2b(text, digest_size=8).digest(), "little")
    return seed ^ own, choice, position, draw("perturb", branch.replaced)


def asked(o: Open, row: Row, depth: int) -> list[Ask]:
    """What a slot wants to know: of its pick, its draft's token, the likeliest, those with noise,
    and those named, in this order."""
    request, draft = o.job.request, o.branch.draft
    reads, pick = o.reads, row.seat.wanted
    top = reads.top
    others = row.likeliest(request.others) if request.others else ()
    likeliest = row.top(top or 1) if top or not pick else []
    out = [Ask(row, *(row.pick if pick else likeliest[0]), others)]
    if depth < len(draft):
        row.expect(draft[depth])
        out.append(Ask(row, draft[depth], row.processed(draft[depth]), others))
    out += [Ask(row, *found, others) for found in likeliest[:top]]
    if reads.perturbed:
        row.perturb(place_of_perturbing(o, depth), reads.perturbed)
        out += [Ask(row, token, row.processed(token), others) for token, _ in row.perturbed]
    for token in reads.named:
        row.expect(token)
        out.append(Ask(row, token, row.processed(token), others))
    return out


def unscaled(row: Row, asks: list[Ask]) -> list[Ask]:
    """With the values that the rules left, as they are."""
    mass = row.mass
    return [Ask(row, ask.token, ask.processed + mass, ask.others) for ask in asks]


def candidates(logits: Logits, asks: Sequence[Ask]) -> list[Candidate]:
    """The facts of all these tokens."""
    table = logits.facts
    more = [ask for ask in asks if ask.token != table[ask.row.number][BEST]]
    looked = iter(logits.look([a.row.number for a in more], [a.token for a in more])
                  if more else ())
    out = []
    for ask in asks:
        row, token = ask.row, ask.token
        facts = table[row.number]
        logit, rank = (facts[PEAK], 1) if token == facts[BEST] else next(looked)
        norm = facts[NORM]
        fact = Candidate(token, logit - norm, ask.processed, int(rank), facts[PEAK] - norm,
                         ask.others)
        entry = row.entry
        out.append(fact if entry is None else fact._replace(entry=entry.processed(token)))
    return out


def slot_of(o: Open, row: Row, depth: int, facts: list[Candidate]) -> Slot:
    drafted, request = depth < len(o.branch.draft), o.job.request
    kept = row.alone() if request.keep_rows or request.why else None
    if request.why:
        facts = [fact._replace(row=kept) for fact in facts]
    if o.reads is PICK:
        slot = Slot(facts[0], facts[1] if drafted else None, (), kept)
    else:
        slot = read_further(o, row, depth, facts, kept)
    if o.job.stages[o.job.stage].entropy_above is not None:
        slot.entropy = row.logits.facts[row.number][ENTROPY] / log(2)
    return slot


def read_further(o: Open, row: Row, depth: int, facts: list[Candidate], kept: Row | None) -> Slot:
    """A slot of a reading that asks for more than the pick."""
    reads, turn, drafted = o.reads, o.turn, depth < len(o.branch.draft)
    if reads.hidden and turn is not None and turn.states is not None:
        facts = [fact._replace(state=turn.states[depth]) for fact in facts]
    found = iter(facts[1 + drafted:])
    perturbed = [value for _, value in row.perturbed] if reads.perturbed else []
    named = facts[len(facts) - len(reads.named):] if reads.named else []
    top = tuple(islice(found, len(facts) - 1 - drafted - len(perturbed) - len(named)))
    slot = Slot(facts[0], facts[1] if drafted else None, top, kept)
    slot.perturbed = tuple(zip(islice(found, len(perturbed)), perturbed, strict=True))
    slot.named = {fact.token: fact for fact in named}
    raw = row.likeliest(reads.raw) if reads.raw else ()
    slot.raw = tuple(pair for pair in raw if pair[1] > -inf)  # a mix may have removed the others
    if reads.similarity and turn is not None:
        slot.similarity = turn.similarity[depth]
    return slot
