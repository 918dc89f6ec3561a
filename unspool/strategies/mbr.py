"""Minimum Bayes risk: of several samples the one that is best if any of them may be the truth.

Eikema and Aziz 2020, arXiv:2005.10283. With `weighted` the truth's probability is the model's own
in place of a count of samples: Jinnai et al. 2023, arXiv:2311.05263.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, fsum
from typing import ClassVar

from unspool.core.branch import Branch
from unspool.core.edits import Edit
from unspool.core.job import Job
from unspool.core.slot import PICK, Reading
from unspool.core.sockets import Slots, Utility
from unspool.strategies import checks
from unspool.strategies.memo import together
from unspool.strategies.sample import Sample, by_choice
from unspool.strategies.vote import log_sum


def probabilities(texts: Sequence[Branch]) -> list[float]:
    """The model's own (before the rules), normalised over the texts; equal texts share theirs."""
    copies = Counter(tuple(b.tokens) for b in texts)
    logs = {tuple(b.tokens): b.logprob for b in texts}
    norm = log_sum(list(logs.values()))
    return [exp(b.logprob - norm) / copies[tuple(b.tokens)] for b in texts]


@dataclass(frozen=True, slots=True)
class MBR:
    """The `n` of `count` samples with the greatest expected utility, which is their score.

    Every sample is a possible truth too, also for itself: all count alike, or by the model's
    probability (`weighted`). Of equal ones the earlier sample is first.
    """

    count: int
    utility: Utility
    n: int = 1
    weighted: bool = False
    searching: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.answers(self.n, self.count)

    @property
    def reads(self) -> Reading:
        return Reading(hidden=True) if self.utility.states else PICK

    def open(self, job: Job) -> Iterable[Edit]:
        return Sample(self.count).open(job)

    def decide(self, job: Job, slots: Slots) -> Iterable[Edit]:
        return Sample(self.count).decide(job, slots)

    def ranked(self, job: Job) -> list[tuple[Branch, float]]:
        """While texts live they are ranked by their log-probability."""
        texts = by_choice(job)
        if job.live:
            ranks = [(b, b.logprob) for b in texts]
        else:
            table = together(job, "utilities", texts, self.utility.table)
            weights = probabilities(texts) if self.weighted else [1 / len(texts)] * len(texts)
            ranks = [(b, fsum(w * u for w, u in zip(weights, row, strict=True)))
                     for b, row in zip(texts, table, strict=True)]
        return sorted(ranks, key=lambda r: -r[1])[:self.n]
