"""Beam search for texts that contain given words: lexically constrained decoding with dynamic beam
allocation. Post and Vilar, arXiv:1804.06609.

Continuations stand in banks by how many tokens of the words they have. The `width` places are
shared out equally among the banks, so that likely texts without the words crowd out none with them.
"""
from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from unspool.core.branch import Branch
from unspool.core.edits import Drop, Edit
from unspool.core.errors import ParameterError
from unspool.core.job import Job
from unspool.core.prefix import Candidate
from unspool.core.slot import Reading
from unspool.core.sockets import Slots
from unspool.core.values import shown
from unspool.strategies.beam import Beam, Grown, Scored, best_first, finished, reading, repeated
from unspool.strategies.words import Clause, Progress, Words, unreachable

__all__ = ["LexicalBeam", "unreachable"]

NAME = "must_contain"


@dataclass(frozen=True, slots=True)
class LexicalBeam(Beam):
    """`words`: clauses, each a tuple of words, each a tuple of token ids; a text has a word of
    every clause, `ordered`: in this order. It may not end before, and what can no longer have them
    within `longest` tokens is not kept; so every answer has them, or the search ends in an error.
    """

    words: tuple[Clause, ...] = field(kw_only=True)
    ordered: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        Beam.__post_init__(self)
        reason = unreachable(self.words, self.longest, self.ordered)
        if reason is not None:
            raise ParameterError(f"{NAME}={shown(self.words)}: {reason}", NAME)

    @property
    def asked(self) -> Words:
        return Words(self.words, self.ordered)

    @property
    def reads(self) -> Reading:
        return reading(self, named=self.asked.tokens)

    def progress(self, branch: Branch) -> Progress:
        kept: Any = branch.kept
        found: Progress = kept[1] if kept else self.asked.follow(Progress(), branch.tokens)
        return found

    def open(self, job: Job) -> Iterable[Edit]:
        """Texts that ended without the words, before this search began, are no answers."""
        drops = repeated(job)
        gone = {drop.branch for drop in drops}
        drops += [Drop(b, "ended without all of the words") for b in finished(job)
                  if b not in gone and self.asked.left(self.progress(b))]
        if len(drops) == len(job.branches):
            raise self.lost(job)
        return drops

    def grown(self, live: Sequence[Branch], slots: Slots) -> list[Grown]:
        """Those that can still have all words, best first."""
        out, words = [], self.asked
        for branch in live:
            slot, before = slots[branch][0], self.progress(branch)
            room = max(self.longest - branch.written - 1, 0)
            sums = (self.attended(branch, slot) or ((),))[0]
            for c in self.candidates(slot.top, slot.named, before):
                then = words.after(before, c.token)
                if not self.longest or words.fits(then, room):
                    out.append(Grown(branch.score + c.processed, branch, c, (sums, then)))
        return best_first(out)

    def candidates(self, top: Iterable[Candidate], named: Any, before: Progress
                   ) -> list[Candidate]:
        """The likeliest tokens, and those that bring a word on, if the rules left them."""
        found = {c.token: c for c in top}
        for token in sorted({rest[0] for rest in self.asked.ways(before)} - set(found)):
            if named[token].processed > -math.inf:
                found[token] = named[token]
        return list(found.values())

    def select(self, job: Job, grown: Sequence[Grown]) -> tuple[list[Scored], list[Scored]]:
        """Those that live on, from all banks; those that end among the first `width` of the last
        one, which have all words."""
        words, total = self.asked, self.asked.total
        banks: list[list[Grown]] = [[] for _ in range(total + 1)]
        for g in grown:
            assert g.kept is not None
            banks[total - words.left(g.kept[1])].append(g)
        ended = [g.scored for g in banks[-1][:self.width] if job.ends(g.branch, g.candidate)]
        kept = best_first(self.shared(job, banks))
        if not (kept or ended or finished(job)):
            raise self.lost(job)
        return [g.scored for g in kept], ended

    def shared(self, job: Job, banks: Sequence[Sequence[Grown]]) -> Iterator[Grown]:
        """Equal shares, what is left over to the last bank. What a bank does not need goes to those
        below it, from the last one down, and what they do not need to those above."""
        waiting = [living(job, bank) for bank in banks]
        share, over = divmod(self.width, len(banks))
        shares = [(i, share) for i in reversed(range(len(banks)))]
        room = over
        for bank, size in [*shares, *((i, 0) for i in range(len(banks)))]:
            room += size
            for g in islice(waiting[bank], room):
                room -= 1
                yield g

    def lost(self, job: Job) -> ParameterError:
        best = min(job.branches, key=lambda b: self.asked.left(self.progress(b)))
        unmet = self.asked.unmet(self.progress(best))
        word = self.words[unmet[0]] if unmet else self.words
        return ParameterError(f"{NAME}: no text has all of the words: "
                              f"{shown(word)} could not be written, for the rules or "
                              "the stops leave no way to it; loosen them, or drop it", NAME)


def living(job: Job, bank: Sequence[Grown]) -> Iterator[Grown]:
    return (g for g in bank if job.ends(g.branch, g.candidate) is None)
