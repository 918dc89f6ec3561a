"""Best of several samples, by a reward."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from unspool.core.branch import Branch
from unspool.core.edits import Edit
from unspool.core.job import Job
from unspool.core.slot import PICK, Reading
from unspool.core.sockets import Reward, Slots
from unspool.strategies import checks
from unspool.strategies.memo import together
from unspool.strategies.sample import Sample, by_choice


@dataclass(frozen=True, slots=True)
class BestOf:
    """The `n` best of `count` samples, which are those of `Sample(count)`.

    `reward`: what they are ranked by, and their score; None: the summed raw log-probability. It is
    asked when all texts have ended. Of equal ones the earlier sample is first.
    """

    count: int
    n: int = 1
    reward: Reward | None = None
    reads: ClassVar[Reading] = PICK
    searching: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.answers(self.n, self.count)

    def open(self, job: Job) -> Iterable[Edit]:
        return Sample(self.count).open(job)

    def decide(self, job: Job, slots: Slots) -> Iterable[Edit]:
        return Sample(self.count).decide(job, slots)

    def ranked(self, job: Job) -> list[tuple[Branch, float]]:
        """While texts live they are ranked by their log-probability."""
        texts = by_choice(job)
        if job.live or self.reward is None:
            ranks = [(b, b.logprob) for b in texts]
        else:
            rewards = together(job, "rewards", texts, self.reward.rewards)
            ranks = list(zip(texts, rewards, strict=True))
        return sorted(ranks, key=lambda r: -r[1])[:self.n]
