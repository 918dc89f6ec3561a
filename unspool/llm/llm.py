"""A loaded model and everything one does with it. All calls share one engine, from any thread."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from queue import SimpleQueue
from types import TracebackType
from typing import Any

from unspool.core.errors import ParameterError, PromptError, UnspoolError
from unspool.core.job import Usage
from unspool.core.params import Params
from unspool.core.sockets import Memory, Model
from unspool.engine.engine import Engine
from unspool.engine.scheduler import Scheduler
from unspool.llm.distribution import Distribution, raw, shaped
from unspool.llm.explain import Explanation, explanation
from unspool.llm.facts import Facts
from unspool.llm.handle import Handle, StreamEvent
from unspool.llm.prompts import Request, one, requests
from unspool.llm.resolve import Resolved, named, resolve
from unspool.llm.results import Output, Token
from unspool.llm.score import score_of
from unspool.llm.steps import Step, steps
from unspool.llm.worker import Worker
from unspool.strategies import Force


class LLM:
    """Made by `load`. Close it, or use it as a context manager, to give memory back.

    A prompt is a string, a list of ids, or chat messages; a list of prompts is a batch, with
    results in its order. In a batch a request that is refused or fails becomes an output with
    `error` set, and harms no other; alone it raises.
    """

    def __init__(self, model: Model, facts: Facts, memory: Memory,
                 scheduler: Scheduler | None = None) -> None:
        self.model, self.facts = model, facts
        self.worker = Worker(Engine(model, memory, scheduler))
        self.tokenizer, self.name, self.numerics = facts.tokenizer, facts.name, facts.numerics
        self.context, self.notes, self.defaults = facts.context, facts.notes, facts.defaults
        self.device = model.device

    def generate(self, prompt: Any, **params: Any) -> Any:
        """Continue a prompt, or each of a batch. Returns an Output, or a list of them.

        Raises ParameterError, PromptError or what the engine met, each naming value and fix.
        """
        asked, batch = requests(prompt, params)
        if not batch:
            return self.finish(self.handle(asked[0]).start())
        handles = [self.attempt(request, i) for i, request in enumerate(asked)]
        try:
            return [h if isinstance(h, Output) else h.future.result() for h in handles]
        except BaseException:
            for handle in handles:
                if isinstance(handle, Handle):
                    handle.cancel()
            raise

    def stream(self, prompt: Any, **params: Any) -> Iterator[StreamEvent]:
        """The events of a request or of a batch as they come. Leaving the loop cancels the rest."""
        asked, batch = requests(prompt, params)
        queue: SimpleQueue[StreamEvent] = SimpleQueue()
        if not batch:
            yield from self.follow([self.handle(asked[0], queue=queue).start()], queue, False)
            return
        begun = [self.attempt(request, i, queue) for i, request in enumerate(asked)]
        yield from (StreamEvent("finish", i, output=h) for i, h in enumerate(begun)
                    if isinstance(h, Output))
        yield from self.follow([h for h in begun if isinstance(h, Handle)], queue, True)

    def submit(self, request: Any, **params: Any) -> Handle:
        """Start one request and return at once: iterate, await or cancel the handle."""
        return self.handle(one(request, params)).start()

    def next(self, prompt: Any, **params: Any) -> Any:
        """The distribution of the next token; raw unless parameters shape it.

        One prompt gives a Distribution, a batch a list of them.
        """
        asked, batch = requests(prompt, params)
        handles = [self.look(request).start() for request in asked]
        out = [self.distribution(handle, bool(request.params))
               for handle, request in zip(handles, asked, strict=True)]
        return out if batch else out[0]

    def steps(self, prompt: Any, **params: Any) -> Iterator[Step]:
        """Write token by token; each step shows its distribution and lets the caller choose."""
        request = one(prompt, params)
        user = named(request.params)
        for name in ("n", "num_beams"):
            if user.active(name) is not None:
                raise ParameterError(f"{name}={getattr(user, name)}: steps follow one text; leave "
                                     "it out", name)
        return steps(self.handle(request, {"held": True, "keep_rows": True}).start())

    def score(self, text: Any, given: Any = None) -> Any:
        """How likely each token of `text` is, after `given` (a prompt of any kind) if there is one.

        A list of texts gives a list of Scores. Without `given` and without a start token, the
        first token has no log-probability and is not counted.
        """
        asked, batch = requests(text, {})
        begun = [self.judge(request.prompt, given) for request in asked]
        out = [score_of(self.finish(handle), first) for handle, first in begun]
        return out if batch else out[0]

    def explain(self, prompt: Any = None, **params: Any) -> Explanation:
        """Every effective parameter, where it came from, and the stages in order. Runs nothing."""
        ids = [0] if prompt is None else self.facts.encode(prompt, named(params))
        return explanation(resolve(self.facts, ids, params), self.notes)

    def close(self) -> None:
        """End what runs, stop the engine's thread, free weights and memory."""
        self.worker.close()
        if self.tokenizer is not None:
            self.tokenizer.close()

    def __enter__(self) -> LLM:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    # ── from requests to handles ─────────────────────────────────────────────────────────────────
    def handle(self, request: Request, extra: Mapping[str, Any] | None = None,
               index: int = 0, queue: SimpleQueue[StreamEvent] | None = None) -> Handle:
        ids = self.facts.encode(request.prompt, named(request.params))
        resolved = resolve(self.facts, ids, request.params, extra)
        return Handle(self.facts, request.prompt, resolved, self.worker, index, queue)

    def attempt(self, request: Request, index: int,
                queue: SimpleQueue[StreamEvent] | None = None) -> Handle | Output:
        """The started handle, or an output that says why there is none."""
        try:
            return self.handle(request, None, index, queue).start()
        except UnspoolError as error:
            return Output(request.prompt, self.name, self.numerics, (), Usage(),
                          dict(request.params), self.notes, error=error)

    def finish(self, handle: Handle) -> Output:
        try:
            return handle.result()
        except BaseException:
            handle.cancel()
            raise

    def follow(self, handles: list[Handle], queue: SimpleQueue[StreamEvent],
               batch: bool) -> Iterator[StreamEvent]:
        left = len(handles)
        try:
            while left:
                event = queue.get()
                left -= event.type == "finish"
                yield event
                if not batch and event.output is not None and event.output.error is not None:
                    raise event.output.error
        finally:
            for handle in handles:
                if not handle.done:
                    handle.cancel()

    def look(self, request: Request) -> Handle:
        """A request for one token whose rows are kept."""
        user = named(request.params)
        ids = self.facts.encode(request.prompt, user)
        facts = self.facts
        if len(ids) == facts.context:  # nothing is written, so a full context is no hindrance
            facts = Facts(**{**vars(facts), "context": facts.context + 1})
        given = {**user.given(), "max_new_tokens": 1}
        resolved = resolve(facts, ids, given, {"held": True, "keep_rows": True})
        return Handle(facts, request.prompt, resolved, self.worker)

    def distribution(self, handle: Handle, rules: bool) -> Distribution:
        for event in handle:
            if event.type == "pause" and handle.job is not None:
                job = handle.job
                row: Any = job.slots[job.live[0]][0].row
                handle.cancel()
                values = shaped(row) if rules and handle.resolved.request.rules else raw(row)
                return Distribution(handle.prompt, values, self.facts)
        raise UnspoolError("the request ended before its distribution was read")

    def judge(self, text: Any, given: Any) -> tuple[Handle, Token | None]:
        facts = self.facts
        if isinstance(text, str):
            ids = facts.needs_text("scoring a text").encode(text, specials=True, start=False)
            before = list(facts.needs_text("").start_ids)
        else:
            ids, before = facts.check(text), []
        if given is not None:
            before = facts.encode(given, Params())
        if not ids:
            raise PromptError("there is nothing to score: the text is empty")
        first = None
        if not before:
            before, ids = ids[:1], ids[1:]
            first = Token(before[0], facts.label(before[0]), b"", 0.0, 0.0, 0)
        if len(before) + len(ids) > facts.context:
            raise PromptError(f"the text has {len(before) + len(ids)} tokens and the model's "
                              f"context {facts.context}: score it in parts")
        handle = self.force(text, before, ids)
        return handle, first

    def force(self, text: Any, before: list[int], ids: list[int]) -> Handle:
        given = {"strategy": Force(tuple(ids)), "max_new_tokens": max(len(ids), 1),
                 "ignore_eos": True}
        resolved: Resolved = resolve(self.facts, before, given)
        return Handle(self.facts, text, resolved, self.worker).start()
