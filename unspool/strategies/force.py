"""Forced text: the tokens are given, the model only says how likely each is (teacher forcing)."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from unspool.core.branch import Branch
from unspool.core.edits import Draft, Edit, Extend
from unspool.core.errors import ParameterError
from unspool.core.job import Job
from unspool.core.slot import PICK, Reading
from unspool.core.sockets import Slots

CHUNK = 64  # tokens judged in one forward: bounds the rows of scores that exist at once


@dataclass(frozen=True, slots=True)
class Force:
    """Write exactly `text` (token ids), whatever the picks are. In the middle of a program it is
    what every living text goes on with."""

    text: tuple[int, ...]
    reads: ClassVar[Reading] = PICK
    searching: ClassVar[bool] = False

    def open(self, job: Job) -> Iterable[Edit]:
        return [Draft(branch, self.text[:CHUNK]) for branch in job.live]

    def decide(self, job: Job, slots: Slots) -> Iterable[Edit]:
        for branch in job.live:
            judged = [slot.drafted for slot in slots[branch] if slot.drafted is not None]
            if not judged:
                raise ParameterError(f"the forced text ends after {branch.written} tokens and no "
                                     "stop ends it there: limit max_new_tokens to its length")
            yield from (Extend(branch, candidate) for candidate in judged)
            done = branch.written - branch.since + len(judged)
            yield Draft(branch, self.text[done:done + CHUNK])

    def ranked(self, job: Job) -> list[tuple[Branch, float]]:
        return [(b, b.score) for b in job.branches]
