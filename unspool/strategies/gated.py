"""Samples of which those that the model is unsure of are given up early, to save their tokens.

Fu et al. 2025, "Deep Think with Confidence", arXiv:2508.15260. The confidence at a token is minus
the mean raw log-probability of the `top` likeliest tokens there: 0 is the least, and it is the
higher the more the model expects one token alone.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum, inf
from typing import ClassVar, NamedTuple

from unspool.core.branch import Branch
from unspool.core.edits import Drop, Edit, Extend
from unspool.core.job import Job
from unspool.core.slot import Reading, Slot
from unspool.core.sockets import Extractor, Slots
from unspool.strategies import checks
from unspool.strategies.memo import together
from unspool.strategies.sample import Sample, agreed, by_choice
from unspool.strategies.vote import Ballot, elected


class Trust(NamedTuple):
    """The confidences of a path: the last ones, the sum and the number of all, and where it fell
    below the threshold first (after so many tokens, to this mean)."""

    recent: tuple[float, ...] = ()
    total: float = 0.0
    length: int = 0
    fell: tuple[int, float] | None = None

    @property
    def mean(self) -> float:
        return self.total / max(self.length, 1)


@dataclass(frozen=True, slots=True)
class Gated:
    """`count` samples; one whose mean confidence over its last `window` tokens falls below
    `threshold` is given up, unless it stayed above longer than all others.

    With an `extractor` the answers are counted as in self-consistency, each text's vote with its
    mean confidence as weight. Without one, and where no text has an answer, the texts are ranked by
    their mean confidence, which is then their score. A path is given up when another one has got
    as far, so a draft does not change which remain.
    """

    count: int
    threshold: float
    window: int = 16
    top: int = 5
    n: int = 1
    extractor: Extractor | None = None
    searching: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.answers(self.n, self.count)
        checks.whole(1, window=self.window, top=self.top)
        checks.within(-inf, inf, threshold=self.threshold)

    @property
    def reads(self) -> Reading:
        return Reading(raw=self.top)

    def open(self, job: Job) -> Iterable[Edit]:
        return Sample(self.count).open(job)

    def decide(self, job: Job, slots: Slots) -> Iterable[Edit]:
        fallen = {b: fell for b in job.live if (fell := trust(b).fell) is not None}
        lasting = [b for b in job.branches if b not in fallen]
        if not lasting:
            lasting = [max(fallen, key=lambda b: fallen[b])]
        for branch in lasting:
            if branch.ended is None:
                yield from self.extend(branch, slots)
        for branch, (after, mean) in fallen.items():
            passed = any(b.ended or trust(b).length >= after for b in lasting)
            if passed and branch not in lasting:
                yield Drop(branch, f"confidence {mean:.3g} over {self.window} tokens is below "
                                   f"{self.threshold:g}")

    def extend(self, branch: Branch, slots: Slots) -> Iterable[Edit]:
        known = trust(branch)
        for slot in agreed(slots[branch]):
            known = self.after(known, slot)
            yield Extend(branch, slot.pick, known)

    def after(self, known: Trust, slot: Slot) -> Trust:
        own = -fsum(logprob for _, logprob in slot.raw) / len(slot.raw)
        recent, count = (*known.recent, own)[-self.window:], known.length + 1
        mean, fell = fsum(recent) / len(recent), known.fell
        if fell is None and count >= self.window and mean < self.threshold:
            fell = count, mean
        return Trust(recent, known.total + own, count, fell)

    def ranked(self, job: Job) -> list[tuple[Branch, float]]:
        """While texts live they are ranked by their mean confidence."""
        texts, found = by_choice(job), []
        if self.extractor is not None and not job.live:
            answers = together(job, "answers", texts, self.extractor.answers)
            found = elected(Ballot(b, answer, trust(b).mean, trust(b).mean)
                            for b, answer in zip(texts, answers, strict=True))
        sure = sorted(((b, trust(b).mean) for b in texts), key=lambda r: -r[1])
        return (found or sure)[:self.n]


def trust(branch: Branch) -> Trust:
    return branch.kept if isinstance(branch.kept, Trust) else Trust()
