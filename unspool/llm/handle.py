"""A handle on a request in flight: iterate its events, await or take its result, cancel it.

Safe to use from any thread. The worker's thread fills it; readers only wait.
"""
from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from math import exp
from queue import SimpleQueue
from typing import Any, Literal

from unspool.core.branch import Branch, Ended
from unspool.core.events import Commit, Event, Finished, Paused, Provisional, Revoke
from unspool.core.job import Job, Usage
from unspool.core.prefix import Candidate
from unspool.llm.emit import Emitter
from unspool.llm.facts import Facts
from unspool.llm.resolve import Resolved
from unspool.llm.results import Choice, Output, Ranked, Token
from unspool.llm.worker import Worker


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One thing that happened. Joined `text` of a choice's commits is its final text.

    `commit`: `tokens` are final and `text` is what they make certain. `provisional`: tokens that
    follow on the path that leads now; `revoke`: the last `count` of them are taken back. `finish`:
    the request is done, `output` is its result. `index`: which request of the batch.
    """

    type: Literal["commit", "provisional", "revoke", "finish", "pause"]
    index: int = 0
    choice: int = 0
    text: str = ""
    tokens: tuple[Token, ...] = ()
    count: int = 0
    output: Output | None = None


class Handle:
    def __init__(self, facts: Facts, prompt: Any, resolved: Resolved, worker: Worker,
                 index: int = 0, queue: SimpleQueue[StreamEvent] | None = None) -> None:
        self.facts, self.prompt, self.resolved, self.worker = facts, prompt, resolved, worker
        self.index = index
        self.events: SimpleQueue[StreamEvent] = queue or SimpleQueue()
        self.future: Future[Output] = Future()
        self.job: Job | None = None
        self.cancelled = False
        self.emitters: dict[int, Emitter] = {}
        self.texts: dict[int, str] = {}

    def start(self) -> Handle:
        self.worker.submit(self.resolved.request, self.tell)
        return self

    def cancel(self) -> None:
        """Stop within two steps. The result holds what was written, finish_reason "cancelled"."""
        self.cancelled = True
        if self.job is not None:
            self.worker.cancel(self.job)

    @property
    def done(self) -> bool:
        return self.future.done()

    def result(self, timeout: float | None = None) -> Output:
        """Wait for the output. Raises what ended the request, TimeoutError after `timeout` s."""
        output = self.future.result(timeout)
        if output.error is not None:
            raise output.error
        return output

    def __iter__(self) -> Iterator[StreamEvent]:
        while True:
            event = self.events.get()
            yield event
            if event.type == "finish":
                if event.output is not None and event.output.error is not None:
                    raise event.output.error
                return

    def __await__(self) -> Generator[Any, None, Output]:
        return asyncio.wrap_future(self.future).__await__()

    # ── on the worker's thread ───────────────────────────────────────────────────────────────────
    def tell(self, job: Job | None, events: list[Event]) -> None:
        self.job = job
        if job is not None and self.cancelled and job.live:
            job.end(Ended("cancelled"))
        for event in events:
            match event:
                case Commit(choice, tokens):
                    self.say("commit", choice, tokens, self.emitter(choice).commit(tokens))
                case Provisional(choice, tokens):
                    self.say("provisional", choice, tokens)
                case Revoke(choice, count):
                    self.events.put(StreamEvent("revoke", self.index, choice, count=count))
                case Paused():
                    self.events.put(StreamEvent("pause", self.index))
                case Finished(error):
                    self.finish(job, error)

    def emitter(self, choice: int) -> Emitter:
        skip = bool(self.resolved.params.skip_special_tokens)
        if choice not in self.emitters:
            self.emitters[choice] = Emitter(
                self.facts.piece(skip), self.resolved.ends, self.resolved.strings)
            self.texts[choice] = ""
        return self.emitters[choice]

    def say(self, kind: Literal["commit", "provisional"], choice: int,
            tokens: tuple[Candidate, ...], text: str = "") -> None:
        if kind == "commit":
            self.texts[choice] += text
        shown = tuple(map(self.token, tokens))
        self.events.put(StreamEvent(kind, self.index, choice, text, shown))

    def finish(self, job: Job | None, error: Exception | None) -> None:
        ranked = [] if job is None else job.strategy.ranked(job)
        choices = tuple(self.choice(i, *answer) for i, answer in enumerate(ranked))
        usage = Usage() if job is None else job.usage
        usage.completion = sum(len(c.tokens) for c in choices)
        request = self.resolved.request
        output = Output(
            self.prompt, self.facts.name, self.facts.numerics, choices, usage,
            self.resolved.params.to_json(), (*self.facts.notes, *self.resolved.notes),
            request.seed, error, () if job is None else tuple(job.trace))
        self.future.set_result(output)
        self.events.put(StreamEvent("finish", self.index, output=output))

    def choice(self, number: int, branch: Branch, score: float) -> Choice:
        """The answer of one branch; the rest of its text is emitted here."""
        rest = self.emitter(number).finish(branch.ended)
        if rest:
            self.say("commit", number, (), rest)
        ended = branch.ended or Ended("cancelled")
        return Choice(self.texts[number], tuple(map(self.token, branch.facts)), ended.reason,
                      ended.which, score, number)

    def token(self, fact: Candidate) -> Token:
        label = self.facts.label
        data = self.facts.piece()(fact.token)
        top = tuple(Ranked(i, label(i), exp(logprob), logprob, rank)
                    for rank, (i, logprob) in enumerate(fact.others, 1))
        return Token(fact.token, label(fact.token), data, fact.logprob, fact.processed,
                     fact.rank, top)
