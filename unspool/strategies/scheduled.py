"""A strategy some of whose numbers change while it writes: a width that shrinks, an alpha that
falls."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import product
from typing import Any

from unspool.core.branch import Branch
from unspool.core.edits import Edit
from unspool.core.errors import ParameterError
from unspool.core.job import Job
from unspool.core.schedule import Schedule
from unspool.core.slot import Reading, Slot
from unspool.core.sockets import Slots, Strategy
from unspool.core.values import shown


@dataclass(frozen=True, slots=True)
class Scheduled:
    """`strategy`, at each step with the numbers that the schedules name for it.

    `numbers`: (field, schedule) each; where the field holds a whole number the nearest one is
    taken. The step is that of the longest living text, so contrastive search judges the first
    token's candidates at step 1. A number that a strategy uses only at its beginning or its end has
    the value of that step. Raises ParameterError for a field that is no number, and for values that
    the strategy refuses.
    """

    strategy: Strategy
    numbers: tuple[tuple[str, Schedule], ...]
    reads: Reading = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        whole: Any = self.strategy
        known = [f.name for f in fields(whole) if f.init] if is_dataclass(whole) else []
        for name, _ in self.numbers:
            value = getattr(self.strategy, name) if name in known else None
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise ParameterError(f"{name}: {shown(self.strategy)} has no such number; its "
                                     f"fields are {', '.join(known) or 'not known'}", name)
            if [other for other, _ in self.numbers].count(name) > 1:
                raise ParameterError(f"{name} has two schedules: give one", name)
        # What a strategy reads grows or falls with each number, so the most is asked for where
        # every number is at an end of its range.
        ends = [(min(s.values), max(s.values)) for _, s in self.numbers]
        asked = [self.valued(corner).reads for corner in product(*ends)]
        object.__setattr__(self, "reads", most(asked))

    @property
    def searching(self) -> bool:
        return self.strategy.searching

    def valued(self, values: Iterable[float]) -> Strategy:
        found = {}
        for (name, _), value in zip(self.numbers, values, strict=True):
            whole = isinstance(getattr(self.strategy, name), int)
            found[name] = round(value) if whole else float(value)
        made: Strategy = replace(self.strategy, **found)  # type: ignore[type-var]
        return made

    def at(self, job: Job) -> Strategy:
        step = max([b.written - b.since for b in job.live or job.branches], default=0)
        return self.valued(schedule.at(step) for _, schedule in self.numbers)

    def open(self, job: Job) -> Iterable[Edit]:
        return self.at(job).open(job)

    def decide(self, job: Job, slots: Slots) -> Iterable[Edit]:
        """The strategy of this step sees what it would have read alone."""
        now = self.at(job)
        reads = now.reads
        if reads != self.reads:
            slots = {b: [narrowed(slot, reads) for slot in own] for b, own in slots.items()}
        return now.decide(job, slots)

    def ranked(self, job: Job) -> list[tuple[Branch, float]]:
        return self.at(job).ranked(job)


def most(asked: Sequence[Reading]) -> Reading:
    """A reading that has all that these have."""
    if all(reads == asked[0] for reads in asked):
        return asked[0]
    found: dict[str, Any] = {f.name: max(getattr(r, f.name) for r in asked)
                             for f in fields(Reading) if f.name != "named"}
    return Reading(**found, named=tuple(dict.fromkeys(t for r in asked for t in r.named)))


def narrowed(slot: Slot, reads: Reading) -> Slot:
    return replace(slot, top=slot.top[:reads.top], raw=slot.raw[:reads.raw],
                   perturbed=slot.perturbed[:reads.perturbed])
