"""Contrastive search: a likely token whose state is unlike those of the text so far.

Su et al. 2022, arXiv:2202.06417: of the `k` likeliest tokens the one with the greatest
(1 - alpha) p(v) - alpha max_j cos(h_v, h_j), h being the model's last hidden state after a token
and j all tokens before, those of the prompt too.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp
from typing import ClassVar

from unspool.core.branch import Branch
from unspool.core.edits import Drop, Edit, Extend, Fork
from unspool.core.job import Job
from unspool.core.prefix import Candidate
from unspool.core.slot import Reading, Slot
from unspool.core.sockets import Slots
from unspool.strategies import checks


@dataclass(frozen=True, slots=True)
class Contrastive:
    """Each text has `k` branches that differ in their last token; the best goes on in `k` others.

    p is the probability after the rules. A candidate that would end the text is a draft until it
    wins, since what has ended is not read: so it is judged by its state as the others are. Where
    the rules leave nothing behind it, its state is not known, and the greatest similarity among
    the others stands in. `alpha` 0 is greedy. Ties go to the likelier token, then to the lower id.
    """

    k: int = 4
    alpha: float = 0.6
    searching: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.whole(1, k=self.k)
        checks.within(0, 1, alpha=self.alpha)

    @property
    def reads(self) -> Reading:
        return Reading(top=self.k, pick=False, similarity=self.alpha > 0)

    def open(self, job: Job) -> Iterable[Edit]:
        return ()

    def decide(self, job: Job, slots: Slots) -> Iterable[Edit]:
        for choice in dict.fromkeys(b.choice for b in job.live):
            rivals = [b for b in job.live if b.choice == choice]
            best = self.best(rivals, slots)
            first, waits = slots[best][0], best.kept is True
            if waits and first.drafted is not None:
                yield Extend(best, first.drafted, kept=False)
            else:
                yield from (self.candidate(job, best, c) for c in first.top[:self.k])
                yield Drop(best, "continued by its likeliest tokens")
            yield from (Drop(b, "another token is likelier or less alike")
                        for b in job.branches if b.choice == choice and b is not best)

    def candidate(self, job: Job, branch: Branch, candidate: Candidate) -> Fork:
        """The branch with one more token. `kept`: it is only a draft as yet."""
        if job.ends(branch, candidate) is None:
            return Fork(branch, candidate, kept=False)
        return Fork(branch, kept=True, draft=(candidate.token,))

    def best(self, rivals: Sequence[Branch], slots: Slots) -> Branch:
        if len(rivals) == 1:
            return rivals[0]
        alike = {b: last.similarity for b in rivals if (last := behind(b, slots[b])) is not None}
        most = max(alike.values(), default=0.0)

        def merit(branch: Branch) -> float:
            fact = slots[branch][0].drafted if branch.kept is True else branch.settled.fact
            p = 0.0 if fact is None else exp(fact.processed)
            return (1 - self.alpha) * p - self.alpha * alike.get(branch, most)

        return max(rivals, key=merit)  # the first of equal ones; they stand by their rank

    def ranked(self, job: Job) -> list[tuple[Branch, float]]:
        """Each text with its summed log-probability after the rules; while it lives, the likeliest
        of its branches."""
        best = sorted(job.branches, key=lambda b: (b.choice, -b.score))
        return [(b, b.score) for i, b in enumerate(best)
                if i == 0 or b.choice != best[i - 1].choice]


def behind(branch: Branch, slots: Sequence[Slot]) -> Slot | None:
    """The slot behind the branch's candidate, if it was read."""
    at = int(branch.kept is True)
    return slots[at] if at < len(slots) else None
