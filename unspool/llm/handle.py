"""A handle on a request in flight: iterate its events, await or take its result, cancel it.

Safe to use from any thread. The worker's thread fills it; readers only wait.
"""
from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from math import exp
from queue import SimpleQueue
from typing import Any, Literal

from unspool.core.branch import Branch, Ended
from unspool.core.events import Commit, Event, Finished, Paused, Provisional, Revoke
from unspool.core.job import Job
from unspool.core.prefix import Candidate
from unspool.core.records import Usage
from unspool.core.slot import Slot
from unspool.engine.engine import fault
from unspool.llm.emit import Emitter
from unspool.llm.facts import Facts
from unspool.llm.prompts import is_chat
from unspool.llm.resolve import Resolved
from unspool.llm.results import Choice, Output, Ranked, Token
from unspool.llm.why import Why
from unspool.llm.worker import Worker
from unspool.strategies import Force


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One thing that happened. Joined `text` of a choice's commits is its final text.

    `commit`: `tokens` are final and `text` is what they make certain. `provisional`: tokens that
    follow on the path that leads now; `revoke`: the last `count` of them are taken back. `finish`:
    the request is done, `output` is its result. `pause`: a held request waits at `slot`.
    `index`: which request of the batch.
    """

    type: Literal["commit", "provisional", "revoke", "finish", "pause"]
    index: int = 0
    choice: int = 0
    text: str = ""
    tokens: tuple[Token, ...] = ()
    count: int = 0
    output: Output | None = None
    slot: Slot | None = None


class Handle:
    """Iterate it for the events as they come: each goes to one reader, `finish` to every one."""

    def __init__(self, facts: Facts, prompt: Any, resolved: Resolved, worker: Worker,
                 index: int = 0, queue: SimpleQueue[StreamEvent] | None = None) -> None:
        self.facts, self.resolved, self.worker, self.index = facts, resolved, worker, index
        said = isinstance(prompt, str) or is_chat(prompt)
        self.prompt = prompt if said else list(resolved.request.prompt)
        self.params = resolved.params.to_json()
        self.piece = facts.piece(bool(resolved.params.skip_special_tokens))
        self.events: SimpleQueue[StreamEvent] = queue or SimpleQueue()
        self.future: Future[Output] = Future()
        self.future.set_running_or_notify_cancel()  # only `cancel` below ends it early
        self.job: Job | None = None
        self.emitters: dict[int, Emitter] = {}
        self.texts: dict[int, str] = {}

    def cancel(self) -> None:
        """Stop within two steps. The result holds what was written, finish_reason "cancelled"."""
        self.worker.post(self.end)

    @property
    def done(self) -> bool:
        return self.future.done()

    def result(self, timeout: float | None = None) -> Output:
        """Wait for the output. Raises what ended the request, TimeoutError after `timeout` s."""
        return sound(self.future.result(timeout))

    def __iter__(self) -> Iterator[StreamEvent]:
        while True:
            event = self.events.get()
            if event.output is None:
                yield event
                continue
            self.events.put(event)
            yield event
            sound(event.output)
            return

    def __await__(self) -> Generator[Any, None, Output]:
        """The output, as `result` gives it. To cancel the waiting task cancels the request."""
        return self.wait().__await__()

    async def wait(self) -> Output:
        try:
            return sound(await asyncio.wrap_future(self.future))
        except asyncio.CancelledError:
            self.cancel()
            raise

    # ── on the worker's thread ───────────────────────────────────────────────────────────────────
    def tell(self, job: Job | None, events: list[Event]) -> None:
        self.job = job
        try:
            for event in events:
                if not self.done:
                    self.show(job, event)
        except BaseException as error:  # a caller's strategy may give answers that no one can show
            self.end("error", type(error).__name__)
            self.finish([], fault(error))

    def end(self, reason: str = "cancelled", which: str | None = None) -> None:
        if self.job is not None:
            self.job.end(Ended(reason, which))

    def show(self, job: Job | None, event: Event) -> None:
        match event:
            case Commit(choice, tokens):
                self.commit(choice, tokens, self.emitter(choice).commit(tokens))
            case Provisional(choice, tokens):
                self.put("provisional", choice, tokens=tuple(map(self.token, tokens)))
            case Revoke(choice, count):
                self.put("revoke", choice, count=count)
            case Paused() if job is not None:
                self.put("pause", slot=job.slots[job.live[0]][0])
            case Finished(error):
                # A model that is closed ends its jobs between steps, with something left to show.
                for last in () if job is None else job.events():
                    self.show(job, last)
                ranked = [] if job is None else job.strategy.ranked(job)
                self.finish([self.choice(i, *answer) for i, answer in enumerate(ranked)], error)

    def put(self, kind: Literal["commit", "provisional", "revoke", "finish", "pause"],
            choice: int = 0, **fields: Any) -> None:
        self.events.put(StreamEvent(kind, self.index, choice, **fields))

    def emitter(self, choice: int) -> Emitter:
        if choice not in self.emitters:
            self.emitters[choice] = Emitter(self.piece, self.resolved.ends, self.resolved.strings)
            self.texts[choice] = ""
        return self.emitters[choice]

    def commit(self, choice: int, tokens: Iterable[Candidate], text: str) -> None:
        self.texts[choice] += text
        self.put("commit", choice, text=text, tokens=tuple(map(self.token, tokens)))

    def choice(self, number: int, branch: Branch, score: float) -> Choice:
        """The answer of one branch; the rest of its text is emitted here."""
        rest = self.emitter(number).finish(branch.ended)
        if rest:
            self.commit(number, (), rest)
        ended, facts = branch.ended or Ended("cancelled"), branch.facts
        return Choice(self.texts[number], tuple(map(self.token, facts)), ended.reason,
                      ended.which, score, number, self.whys(facts))

    def whys(self, facts: Sequence[Candidate]) -> tuple[Why, ...]:
        """The records of a text's tokens, where they were asked for."""
        request = self.resolved.request
        if not request.why:
            return ()
        forced = isinstance(request.strategy, Force)
        return tuple([Why(i, fact, self.facts, forced) for i, fact in enumerate(facts)])

    def finish(self, choices: Iterable[Choice], error: Exception | None) -> None:
        job, resolved = self.job, self.resolved
        answers = tuple(choices)
        usage = Usage() if job is None else job.usage
        usage.completion = sum(len(c.tokens) for c in answers)
        output = Output(
            self.prompt, self.facts.name, self.facts.numerics, answers, usage,
            self.params, (*self.facts.notes, *resolved.notes), resolved.request.seed, error,
            () if job is None else tuple(job.trace))
        self.future.set_result(output)
        self.put("finish", output=output)

    def token(self, fact: Candidate) -> Token:
        text = self.facts.text
        top = tuple([Ranked(i, text(i), exp(logprob), logprob, rank)
                     for rank, (i, logprob) in enumerate(fact.others, 1)])
        return Token(fact.token, text(fact.token), self.piece(fact.token), fact.logprob,
                     fact.processed, fact.rank, top)


def begin(handles: Iterable[Handle]) -> None:
    """Start them all with the same step, so that a batch is the same batch every time."""
    handles = list(handles)
    if handles:
        handles[0].worker.submit([(h.resolved.request, h.tell) for h in handles])


def sound(output: Output) -> Output:
    """The output, unless an error ended it, which is then raised."""
    if output.error is not None:
        raise output.error
    return output
