"""The runner: branches in, rows of scores out. Pure in meaning; a memory saves work in practice.

It asks the memory for the longest known prefix of each text, and reads the rest in one forward.
Branches that stand at the same place (n samples of one prompt) share one row. One model has one
runner; other models' requests may use it as a voice, so what it does is done under its lock.
"""
from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from threading import RLock
from typing import Any

from unspool.core.branch import Branch
from unspool.core.errors import ParameterError
from unspool.core.job import Job
from unspool.core.prefix import Prefix
from unspool.core.sockets import Lease, Memory, Model, Reader, Scores, Span
from unspool.memories import Nothing

OWN = -1  # the voice that is the request's own model and prompt


@dataclass(slots=True, eq=False)
class Turn:
    """The part of one text that the next forward reads, for all `branches` that stand there.

    `text` is the settled tokens and the draft as a voice of the request sees them; `upto` of its
    tokens will be known afterwards. `hidden` and `layers`: as in `Span`.
    """

    runner: Runner
    job: Job
    branches: list[Branch]
    voice: int
    text: Prefix
    memory: Memory
    lease: Lease
    start: int
    upto: int
    hidden: bool = False
    layers: tuple[int, ...] = ()
    similarity: Sequence[float] = ()
    states: Any = None
    inner: dict[int, Any] = field(default_factory=dict)

    @property
    def slots(self) -> int:
        return len(self.branches[0].draft) + 1

    @property
    def scored(self) -> bool:
        """Its slots come with this forward; otherwise it is one more chunk of a long text."""
        return self.upto == self.text.length

    @property
    def rows(self) -> int:
        return self.slots if self.scored else 0

    @property
    def tokens(self) -> list[int]:
        return self.text.at(self.upto).last(self.upto - self.start)

    def span(self) -> Span:
        return Span(self.lease, self.tokens, self.start, self.rows, self.hidden, self.layers)


class Runner:
    def __init__(self, model: Model, memory: Memory) -> None:
        self.model, self.memory = model, memory
        self.forwards = 0
        self.nothing: Memory = Nothing()
        self.held: dict[Branch, dict[int, tuple[Memory, Lease, Prefix]]] = {}
        self.reader = cache(lambda salt, planes: Reader(
            model.fingerprint, model.numerics, salt, planes))
        self.lock = RLock()

    def of(self, job: Job) -> Memory:
        return self.memory if job.request.remember else self.nothing

    def turn(self, job: Job, branches: list[Branch], budget: int, voice: int = OWN) -> Turn:
        """Lease what is known of the branches' text and plan at most `budget` tokens more.

        Raises ParameterError for a draft or a text that the model cannot read.
        """
        branch, reading = branches[0], job.strategy.reads
        begins = voice == OWN and not job.usage.computed
        settled = branch.settled if voice == OWN else branch.voices[voice]
        with self.lock:
            self.release(branch, voice)
            text = self.readable(branch, settled)
            memory = self.of(job)
            planes = reading.planes if voice == OWN else ""
            lease = memory.known(self.reader(job.request.salt, planes), settled)
        turn = Turn(self, job, branches, voice, text, memory, lease, lease.length, text.length,
                    bool(planes))
        if voice == OWN:
            turn.layers = tuple(sorted({j for mix in job.force(branch).mixes for j in mix.layers}))
        if memory.keeps:
            turn.upto = min(text.length, lease.length + budget)
        if max(turn.tokens) >= self.model.vocab:
            self.distrust([turn])
            raise ParameterError(f"token {max(turn.tokens)} is outside the vocabulary: ids run "
                                 f"from 0 to {self.model.vocab - 1}", "strategy")
        if begins:
            job.usage.cached = lease.length
        return turn

    def readable(self, branch: Branch, settled: Prefix) -> Prefix:
        """The text with its draft, if the model can read it."""
        if branch.parents != tuple(range(-1, len(branch.draft) - 1)) or branch.tail != "causal":
            raise ParameterError("a draft that is not a chain of tokens is not in this version")
        for token in branch.draft:
            settled = settled.extend(token)
        context = self.model.context
        if settled.length > context:
            raise ParameterError(f"a text has {settled.length} tokens with its draft and the "
                                 f"model's context {context}: draft less", "strategy")
        return settled

    def score(self, turns: Sequence[Turn]) -> Scores:
        """Launch one forward over all turns. Their leases then hold what was read."""
        scores = self.model.score([turn.span() for turn in turns])
        self.forwards += 1
        for t in turns:
            t.job.usage.computed += t.upto - t.start
            self.hold(t)
        for job in {id(t.job): t.job for t in turns}.values():
            job.usage.forwards += 1
        return scores

    def hold(self, turn: Turn) -> None:
        """The first of the branches holds what was read so far."""
        with self.lock:
            if turn.memory.keeps:
                held = self.held.setdefault(turn.branches[0], {})
                held[turn.voice] = turn.memory, turn.lease, turn.text.at(turn.upto)
            else:
                turn.memory.settle(turn.lease, None)

    def release(self, branch: Branch, voice: int | None = None) -> None:
        """The branch no longer holds what a voice of it read (None: all of them); the memory may
        keep it or not."""
        with self.lock:
            held = self.held.get(branch, {})
            for one in list(held) if voice is None else [voice] if voice in held else []:
                memory, lease, text = held.pop(one)
                memory.settle(lease, text)
            if not held:
                self.held.pop(branch, None)

    def distrust(self, turns: Sequence[Turn]) -> None:
        """A forward failed: whatever it may have written into these leases is forgotten."""
        with self.lock:
            for t in turns:
                held = self.held.get(t.branches[0], {})
                held.pop(t.voice, None)
                if not held:
                    self.held.pop(t.branches[0], None)
                t.memory.settle(t.lease, None)

    def close(self) -> None:
        for branch in list(self.held):
            self.release(branch)
        with self.lock:
            self.memory.clear()
            self.model.close()
        give_back()


def give_back() -> None:
    """Hand freed pages to the system, where the C library (glibc) would keep them for later."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
