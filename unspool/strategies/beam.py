"""Beam search: keep the likeliest `width` branches, and the best texts that ended.

A text's rank is made of its summed log-probability and its length (`length.py`); it decides which
finished text wins, never which branches are explored. The other beam searches are this one with
another order of the continuations.
"""
from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, NamedTuple

from unspool.core.branch import Branch
from unspool.core.edits import Drop, Edit, Fork
from unspool.core.errors import ParameterError
from unspool.core.job import Job
from unspool.core.prefix import Candidate
from unspool.core.slot import Reading, Slot
from unspool.core.sockets import Slots
from unspool.strategies.checks import whole, within
from unspool.strategies.length import Kind, best_rank, coverage, rank

Scored = tuple[float, Fork]  # the summed log-probability with its token
Ranks = tuple[float, Branch | Fork]


class Grown(NamedTuple):
    """A branch with one more token. `score`: the summed log-probability with it. `kept`: what is
    kept with the text; its first entry is the attention summed over the written tokens, [source].
    """

    score: float
    branch: Branch
    candidate: Candidate
    kept: tuple[Any, ...] | None = None

    @property
    def scored(self) -> Scored:
        return self.score, Fork(self.branch, self.candidate, kept=self.kept)


@dataclass(frozen=True, slots=True)
class Beam:
    """`width` live branches at every step, as long as the tree has so many.

    `early_stopping`: True ends at `width` finished texts; False when the best live branch, ranked
    at its present length, is no better than all of them; "never" when it could not be even at
    `longest` tokens (0: not known, as False). `ends`: how many tokens may end a text; the reading
    asks for so many more than `width`, and for `width` more at least, since each may stand before
    one that lives on. `n`: how many texts are returned. `patience`: `width` times this many
    finished texts are held and waited for, arXiv:2204.05424; never fewer than `n`. `kind`: how a
    length counts. `coverage`: the weight of the coverage penalty, for models with a source.
    `unscaled`: scores add up what the rules leave, not normalised, see `Reading`.
    """

    width: int = 5
    n: int = 1
    length_penalty: float = 1.0
    early_stopping: bool | Literal["never"] = False
    longest: int = 0
    ends: int = 1
    kind: Kind = "plain"
    patience: float = 1.0
    coverage: float = 0.0
    unscaled: bool = False
    searching: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole(1, width=self.width, n=self.n)
        within(0, math.inf, patience=self.patience, coverage=self.coverage)

    @property
    def reads(self) -> Reading:
        return reading(self)

    @property
    def hold(self) -> int:
        """So many finished texts are held."""
        return max(self.n, int(self.width * self.patience + 0.5))

    def open(self, job: Job) -> Iterable[Edit]:
        return repeated(job)

    def decide(self, job: Job, slots: Slots) -> Iterable[Edit]:
        live = job.live
        kept, ended = self.select(job, self.grown(live, slots))
        forks, lost, why = self.turn(finished(job), kept, ended)
        return [*forks, *left(live, forks, why), *lost]

    def grown(self, live: Sequence[Branch], slots: Slots) -> list[Grown]:
        """The continuations, best first."""
        return best_first(g for branch in live for g in self.children(branch, slots[branch][0]))

    def children(self, branch: Branch, slot: Slot) -> list[Grown]:
        """The continuations of one branch, best first."""
        kept = self.attended(branch, slot)
        return [Grown(branch.score + c.processed, branch, c, kept) for c in slot.top]

    def attended(self, branch: Branch, slot: Slot) -> tuple[Any, ...] | None:
        """What its continuations keep."""
        if not self.coverage:
            return None
        if not slot.attention:
            raise ParameterError(f"coverage={self.coverage}: this model has no source that it "
                                 "attends to; leave it out", "coverage")
        before: Any = branch.kept
        sums = before[0] if before else (0.0,) * len(slot.attention)
        return (tuple(a + b for a, b in zip(sums, slot.attention, strict=True)),)

    def select(self, job: Job, grown: Sequence[Grown]) -> tuple[list[Scored], list[Scored]]:
        """The best continuations: those that live on, those that end among the first `width`."""
        kept: list[Scored] = []
        ended: list[Scored] = []
        for place, g in enumerate(grown):
            if len(kept) == self.width:
                break
            if job.ends(g.branch, g.candidate) is None:
                kept.append(g.scored)
            elif place < self.width:
                ended.append(g.scored)
        return kept, ended

    def turn(self, old: Sequence[Branch], kept: list[Scored], ended: list[Scored]
             ) -> tuple[list[Fork], list[Drop], str]:
        """What goes on and what has just ended; finished texts that are given up; and why a live
        branch is that has no part in it."""
        ranks: list[Ranks] = [(self.rank(b.score, b.written, b.kept), b) for b in old]
        ranks += [(self.rank(s, f.branch.written + 1, f.kept), f) for s, f in ended]
        ranks.sort(key=lambda r: -r[0])
        winners = ranks[:self.hold]
        won = {id(item) for _, item in winners}
        done = self.done(winners, kept)
        forks = [f for _, f in ended if id(f) in won] + [f for _, f in kept if not done]
        why = "cannot outrank the finished" if done else f"rank below {self.width} of the living"
        lost = f"rank below {self.hold} of the finished"
        return forks, [Drop(b, lost) for b in old if id(b) not in won], why

    def done(self, winners: list[Ranks], kept: list[Scored]) -> bool:
        if not kept:
            return True
        if len(winners) < self.hold:
            return False
        if self.early_stopping is True:
            return True
        return max(self.hope(score, fork) for score, fork in kept) <= winners[-1][0]

    def hope(self, score: float, fork: Fork) -> float:
        """What a living text counts as against the finished."""
        length = fork.branch.written + 1
        if self.early_stopping != "never":
            return self.rank(score, length, fork.kept)
        ends = (length, max(length, self.longest))  # and its coverage may still become full
        return best_rank(score, ends, self.kind, self.length_penalty)

    def rank(self, score: float, length: int, kept: Any = None) -> float:
        value = rank(score, length, self.kind, self.length_penalty)
        return value + coverage(kept[:1], self.coverage) if self.coverage and kept else value

    def ranked(self, job: Job) -> list[tuple[Branch, float]]:
        """The `n` best texts; while some still live, they count as they stand."""
        return self.every(job)[:self.n]

    def every(self, job: Job) -> list[tuple[Branch, float]]:
        ranks = [(b, self.rank(b.score, max(b.written, 1), b.kept)) for b in job.branches]
        return sorted(ranks, key=lambda r: -r[1])


# ── what the beam searches share ─────────────────────────────────────────────────────────────────
def reading(search: Beam, more: int = 0, named: tuple[int, ...] = ()) -> Reading:
    """As many of the likeliest as leave `width` that live on, and so many `more`."""
    return Reading(top=search.width + max(search.width, search.ends) + more, pick=False,
                   named=named, attention=search.coverage > 0, unscaled=search.unscaled)


def best_first(grown: Iterable[Grown]) -> list[Grown]:
    """Stable: ties go to the earlier branch, then to the lower id."""
    return sorted(grown, key=lambda g: -g.score)


def finished(job: Job) -> list[Branch]:
    return [b for b in job.branches if b.ended is not None]


def left(live: Iterable[Branch], forks: Iterable[Fork], why: str) -> list[Drop]:
    """The branches that were gone on from, or not."""
    parents = {f.branch for f in forks}
    return [Drop(b, "continued by its best tokens" if b in parents else why) for b in live]


def repeated(job: Job) -> list[Drop]:
    """Texts that stand there twice, as samples may: a search goes on with one of them."""
    first: dict[object, Branch] = {}
    for b in job.branches:
        first.setdefault((b.ended is None, *b.settled.tokens()), b)
    kept = set(first.values())
    return [Drop(b, "the same text as another") for b in job.branches if b not in kept]


def plain(search: Beam, **changes: Any) -> Beam:
    """The beam search with these fields."""
    return Beam(**{f.name: getattr(search, f.name) for f in fields(Beam)} | changes)
