"""Self-consistency: of several samples the answer that most of them give.

Wang et al. 2022, arXiv:2203.11171: the reasoning that a text holds is summed out, its answer is
counted.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from unspool.core.branch import Branch
from unspool.core.edits import Edit
from unspool.core.job import Job
from unspool.core.slot import PICK, Reading
from unspool.core.sockets import Extractor, Slots
from unspool.strategies import checks
from unspool.strategies.memo import together
from unspool.strategies.sample import Sample, by_choice
from unspool.strategies.vote import Ballot, elected


def per_token(branch: Branch) -> float:
    return branch.logprob / max(branch.written, 1)


@dataclass(frozen=True, slots=True)
class SelfConsistency:
    """The `n` answers that `count` samples give most often, each in a text that gives it.

    The score is the share of the votes; a text without an answer casts none. Ties go to the answer
    with the greater summed probability, then to the one given first. Of the texts with one answer
    the likeliest per token is returned. There may be fewer answers than `n`. Where no text has one,
    the texts that are likeliest per token are returned, each with score 0.
    """

    count: int
    extractor: Extractor
    n: int = 1
    reads: ClassVar[Reading] = PICK
    searching: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.answers(self.n, self.count)

    def open(self, job: Job) -> Iterable[Edit]:
        return Sample(self.count).open(job)

    def decide(self, job: Job, slots: Slots) -> Iterable[Edit]:
        return Sample(self.count).decide(job, slots)

    def ranked(self, job: Job) -> list[tuple[Branch, float]]:
        """While texts live nothing is counted."""
        texts, found = by_choice(job), []
        if not job.live:
            answers = together(job, "answers", texts, self.extractor.answers)
            found = elected(Ballot(b, answer, 1.0, per_token(b))
                            for b, answer in zip(texts, answers, strict=True))
        likeliest = sorted(texts, key=lambda b: -per_token(b))
        return (found or [(b, 0.0) for b in likeliest])[:self.n]
