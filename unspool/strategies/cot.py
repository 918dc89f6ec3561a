"""Chain-of-thought decoding: greedy texts that differ in their first token, ranked by how sure the
model is of the answer.

Wang and Zhou 2024, arXiv:2402.10200: where a text reasons before it answers, the likeliest token of
its answer is far ahead of the next one.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import exp, fsum
from typing import ClassVar

from unspool.core.branch import Branch
from unspool.core.edits import Drop, Edit, Extend, Fork
from unspool.core.errors import ParameterError
from unspool.core.job import Job
from unspool.core.slot import Reading, Slot
from unspool.core.sockets import Extractor, Slots
from unspool.strategies import checks
from unspool.strategies.memo import together
from unspool.strategies.sample import agreed

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ChainOfThought:
    """A text for each of the `count` likeliest first tokens, written on by the likeliest token; the
    `n` best are returned (fewer where the rules left fewer first tokens).

    The score is the mean margin, over the tokens of the answer, between the probabilities (after
    the rules) of the likeliest token and the next one. The answer is what the `extractor` finds,
    which needs `piece`, the bytes that a token adds to a text. Without an extractor or an answer
    all tokens but the first count. Of equal texts the one with the likelier first token is first.
    """

    count: int = 10
    n: int = 1
    extractor: Extractor | None = None
    piece: Callable[[int], bytes] | None = field(default=None, repr=False)
    searching: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.answers(self.n, self.count)
        if self.extractor is not None and self.piece is None:
            raise ParameterError("extractor without piece: give the bytes of each token, by which "
                                 "the tokens of the answer are found", "extractor")

    @property
    def reads(self) -> Reading:
        return Reading(top=max(self.count, 2), pick=False)

    def open(self, job: Job) -> Iterable[Edit]:
        return ()

    def decide(self, job: Job, slots: Slots) -> Iterable[Edit]:
        for branch in job.live:
            if branch.written == branch.since:
                first = slots[branch][0]
                yield from (Fork(branch, candidate, kept=(margin(first),))
                            for candidate in first.top[:self.count])
                yield Drop(branch, "continued by its likeliest first tokens")
                continue
            margins = kept(branch)
            for slot in agreed(slots[branch]):
                margins = (*margins, margin(slot))
                yield Extend(branch, slot.pick, margins)

    def ranked(self, job: Job) -> list[tuple[Branch, float]]:
        """While texts live no answer is looked for."""
        texts = job.branches
        places: Sequence[Place | None] = [None] * len(texts)
        if self.extractor is not None and not job.live:
            places = together(job, "answers", texts, self.extractor.spans)
        ranks = [(b, mean(self.counted(b, place)))
                 for b, place in zip(texts, places, strict=True)]
        return sorted(ranks, key=lambda r: -r[1])[:self.n]

    def counted(self, branch: Branch, place: Place | None) -> tuple[float, ...]:
        """The margins that count. Of an answer those of its tokens that this strategy wrote."""
        margins = kept(branch)
        first, end = place or (0, 0)
        own, at = [], 0
        before = branch.written - len(margins)
        for i, token in enumerate(branch.tokens if place else ()):
            start, at = at, at + len(self.piece(token) if self.piece else b"")
            if start < end and at > first and i >= before:
                own.append(margins[i - before])
        return tuple(own) or margins[1:]


def kept(branch: Branch) -> tuple[float, ...]:
    return branch.kept if isinstance(branch.kept, tuple) else ()


def margin(slot: Slot) -> float:
    first, *rest = slot.top
    return exp(first.processed) - (exp(rest[0].processed) if rest else 0.0)


def mean(margins: tuple[float, ...]) -> float:
    return fsum(margins) / max(len(margins), 1)
