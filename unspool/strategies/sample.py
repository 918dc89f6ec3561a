"""Sampling, and greedy when the rules leave one token. With a draft this is speculation."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from unspool.core.branch import Branch
from unspool.core.edits import Edit, Extend, Fork
from unspool.core.job import Job
from unspool.core.slot import PICK, Reading
from unspool.core.sockets import Slots


@dataclass(frozen=True, slots=True)
class Sample:
    """Take the engine's pick; with a draft, go on while the picks agree with it.

    `n`: independent texts, choice 0..n-1, each with its own noise.
    """

    n: int = 1
    reads: ClassVar[Reading] = PICK
    searching: ClassVar[bool] = False

    def open(self, job: Job) -> Iterable[Edit]:
        return [Fork(job.branches[0], choice=i) for i in range(1, self.n)]

    def decide(self, job: Job, slots: Slots) -> Iterable[Edit]:
        for branch in job.live:
            for slot in slots[branch]:
                yield Extend(branch, slot.pick)
                if slot.drafted is None or slot.drafted.token != slot.pick.token:
                    break

    def ranked(self, job: Job) -> list[tuple[Branch, float]]:
        return [(b, b.score) for b in sorted(job.branches, key=lambda b: b.choice)]
