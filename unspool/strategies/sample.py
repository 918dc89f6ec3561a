"""Sampling, and greedy when the rules leave one token. With a draft this is speculation."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from unspool.core.branch import Branch
from unspool.core.edits import Edit, Extend, Fork
from unspool.core.job import Job
from unspool.core.slot import PICK, Reading, Slot
from unspool.core.sockets import Slots


def agreed(slots: Sequence[Slot]) -> Iterator[Slot]:
    """The slots whose picks are written: one, and one more for each that the draft guessed."""
    for slot in slots:
        yield slot
        if slot.drafted is None or slot.drafted.token != slot.pick.token:
            break


def by_choice(job: Job) -> list[Branch]:
    return sorted(job.branches, key=lambda b: b.choice)


@dataclass(frozen=True, slots=True)
class Sample:
    """Take the engine's pick; with a draft, go on while the picks agree with it.

    `n`: independent texts, choice 0..n-1, each with its own noise. Where several texts are there
    already, as many more as are missing fork from those that live, in turn.
    """

    n: int = 1
    reads: ClassVar[Reading] = PICK
    searching: ClassVar[bool] = False

    def open(self, job: Job) -> Iterable[Edit]:
        live = job.live
        missing = range(len(job.branches), self.n) if live else ()
        return [Fork(live[i % len(live)], choice=i) for i in missing]

    def decide(self, job: Job, slots: Slots) -> Iterable[Edit]:
        for branch in job.live:
            for slot in agreed(slots[branch]):
                yield Extend(branch, slot.pick)

    def ranked(self, job: Job) -> list[tuple[Branch, float]]:
        return [(b, b.score) for b in by_choice(job)]
