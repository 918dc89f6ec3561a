"""Beam search: keep the likeliest `width` branches, and the best texts that ended.

A text's rank is its summed log-probability over its length to the power `length_penalty` (end
token counted, prompt not), as in transformers and vLLM. See arXiv:1609.08144 for the idea of a
length penalty; it decides which finished text wins, never which branches are explored.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from unspool.core.branch import Branch
from unspool.core.edits import Drop, Edit, Fork
from unspool.core.job import Job
from unspool.core.slot import Reading
from unspool.core.sockets import Slots

Ranks = tuple[float, Branch | Fork]


@dataclass(frozen=True, slots=True)
class Beam:
    """`width` live branches at every step, as long as the tree has so many.

    `early_stopping`: True ends at `width` finished texts; False when the best live branch, ranked
    at its present length, is no better than all of them; "never" when it could not be even at
    `longest` tokens (for a positive penalty). `ends`: how many tokens may end a text; the reading
    asks for so many more than `width`, and for `width` more at least, since each may stand before
    one that lives on. `n`: how many texts are returned.
    """

    width: int = 5
    n: int = 1
    length_penalty: float = 1.0
    early_stopping: bool | Literal["never"] = False
    longest: int = 0
    ends: int = 1
    searching: ClassVar[bool] = True

    @property
    def reads(self) -> Reading:
        return Reading(top=self.width + max(self.width, self.ends), pick=False)

    def open(self, job: Job) -> Iterable[Edit]:
        return ()

    def decide(self, job: Job, slots: Slots) -> Iterable[Edit]:
        live = job.live
        kept, ended = self.select(job, slots)
        old = [b for b in job.branches if b.ended is not None]
        ranks: list[Ranks] = [(self.rank(b.score, b.written), b) for b in old]
        ranks += [(self.rank(f.branch.score + s, f.branch.written + 1), f) for s, f in ended]
        ranks.sort(key=lambda r: -r[0])
        winners = ranks[:self.width]
        won = {id(item) for _, item in winners}
        done = self.done(winners, kept)
        forks = [f for _, f in ended if id(f) in won] + [f for _, f in kept if not done]
        parents = {f.branch for f in forks}
        why = "cannot outrank the finished" if done else f"rank below {self.width} of the living"
        yield from forks
        yield from (Drop(b, "continued by its best tokens" if b in parents else why) for b in live)
        yield from (Drop(b, f"rank below {self.width} of the finished") for b in old
                    if id(b) not in won)

    def select(self, job: Job, slots: Slots) -> tuple[list[tuple[float, Fork]], ...]:
        """The best continuations: those that live on, those that end among the first `width`."""
        grown = [(branch.score + c.processed, branch, c)
                 for branch in job.live for c in slots[branch][0].top]
        grown.sort(key=lambda g: -g[0])  # stable: ties go to the earlier branch, then the lower id
        kept: list[tuple[float, Fork]] = []
        ended: list[tuple[float, Fork]] = []
        for place, (_, branch, c) in enumerate(grown):
            if len(kept) == self.width:
                break
            if job.ends(branch, c) is None:
                kept.append((c.processed, Fork(branch, c)))
            elif place < self.width:
                ended.append((c.processed, Fork(branch, c)))
        return kept, ended

    def done(self, winners: list[Ranks],
             kept: list[tuple[float, Fork]]) -> bool:
        if not kept:
            return True
        if len(winners) < self.width:
            return False
        if self.early_stopping is True:
            return True
        score, fork = max(((f.branch.score + s, f) for s, f in kept), key=lambda k: k[0])
        length = fork.branch.written + 1
        if self.early_stopping == "never" and self.length_penalty > 0 and self.longest:
            length = self.longest
        return self.rank(score, length) <= winners[-1][0]

    def rank(self, score: float, length: int) -> float:
        return float(score / length ** self.length_penalty)

    def ranked(self, job: Job) -> list[tuple[Branch, float]]:
        """The `n` best texts; while some still live, they count as they stand."""
        every = [(b, self.rank(b.score, max(b.written, 1))) for b in job.branches]
        return sorted(every, key=lambda r: -r[1])[:self.n]
