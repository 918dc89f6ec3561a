"""The runner: branches in, rows of scores out. Pure in meaning; a memory saves work in practice.

It asks the memory for the longest known prefix of each text, and reads the rest in one forward.
Branches that stand at the same place (n samples of one prompt) share one row.
"""
from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from unspool.core.branch import Branch
from unspool.core.errors import ParameterError
from unspool.core.job import Job
from unspool.core.prefix import Prefix
from unspool.core.sockets import Lease, Memory, Model, Reader, Scores, Span
from unspool.memories import Nothing


@dataclass(slots=True, eq=False)
class Turn:
    """The part of one text that the next forward reads, for all `branches` that stand there.

    `text` is the settled tokens and the draft; `upto` of its tokens will be known afterwards.
    """

    job: Job
    branches: list[Branch]
    text: Prefix
    lease: Lease
    start: int
    upto: int
    tokens: list[int]
    rows: int = field(default=0)

    @property
    def scored(self) -> bool:
        """Its slots come with this forward; otherwise it is one more chunk of a long text."""
        return self.upto == self.text.length


class Runner:
    def __init__(self, model: Model, memory: Memory) -> None:
        self.model, self.memory = model, memory
        self.forwards = 0
        self.nothing: Memory = Nothing()
        self.held: dict[Branch, tuple[Memory, Lease, Prefix]] = {}
        self.reader = cache(lambda salt: Reader(model.fingerprint, model.numerics, salt))

    def of(self, job: Job) -> Memory:
        return self.memory if job.request.remember else self.nothing

    def turn(self, job: Job, branches: list[Branch], budget: int) -> Turn:
        """Lease what is known of the branches' text and plan at most `budget` tokens more.

        Raises ParameterError for a draft or a text that the model cannot read.
        """
        branch = branches[0]
        begins = branch.written == 0 and branch not in self.held
        self.release(branch)
        text = branch.settled
        if branch.parents != tuple(range(-1, len(branch.draft) - 1)) or branch.tail != "causal":
            raise ParameterError("a draft that is not a chain of tokens is not in this version")
        for token in branch.draft:
            text = text.extend(token)
        model = self.model
        if text.length > model.context:
            raise ParameterError(f"a text has {text.length} tokens with its draft and the model's "
                                 f"context {model.context}: draft less", "strategy")
        memory = self.of(job)
        lease = memory.known(self.reader(job.request.salt), branch.settled)
        upto = min(text.length, lease.length + budget) if memory.keeps else text.length
        tokens = text.at(upto).last(upto - lease.length)
        turn = Turn(job, branches, text, lease, lease.length, upto, tokens)
        turn.rows = len(branch.draft) + 1 if turn.scored else 0
        if max(tokens) >= model.vocab:
            memory.settle(lease, None)
            raise ParameterError(f"token {max(tokens)} is outside the vocabulary: ids run from 0 "
                                 f"to {model.vocab - 1}", "strategy")
        if begins:
            job.usage.cached = lease.length
        return turn

    def score(self, turns: Sequence[Turn]) -> Scores:
        """Launch one forward over all turns. Their leases then hold what was read."""
        spans = [Span(t.lease, t.tokens, t.start, t.rows) for t in turns]
        scores = self.model.score(spans)
        self.forwards += 1
        for t in turns:
            t.job.usage.computed += t.upto - t.start
            memory = self.of(t.job)
            if memory.keeps:
                self.held[t.branches[0]] = (memory, t.lease, t.text.at(t.upto))
            else:
                memory.settle(t.lease, None)
        for job in {id(t.job): t.job for t in turns}.values():
            job.usage.forwards += 1
        return scores

    def release(self, branch: Branch) -> None:
        """The branch no longer holds what it read; the memory may keep it or not."""
        if branch in self.held:
            memory, lease, text = self.held.pop(branch)
            memory.settle(lease, text)

    def distrust(self, turns: Sequence[Turn]) -> None:
        """A forward failed: whatever it may have written into these leases is forgotten."""
        for t in turns:
            self.held.pop(t.branches[0], None)
            self.of(t.job).settle(t.lease, None)

    def close(self) -> None:
        for branch in list(self.held):
            self.release(branch)
        self.memory.clear()
        self.model.close()
        give_back()


def give_back() -> None:
    """Hand freed pages to the system, where the C library (glibc) would keep them for later."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
