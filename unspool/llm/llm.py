"""A loaded model and everything one does with it. All calls share one engine, from any thread."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from queue import SimpleQueue
from types import TracebackType
from typing import Any

from unspool.core.errors import ParameterError, UnspoolError
from unspool.core.params import Params, fields
from unspool.core.records import Usage
from unspool.core.sockets import Memory, Model
from unspool.core.values import shown
from unspool.engine.engine import Engine
from unspool.engine.scheduler import Scheduler
from unspool.llm.against import Difference, against
from unspool.llm.distribution import Distribution, raw, shaped
from unspool.llm.explain import Explanation, explanation
from unspool.llm.facts import Facts
from unspool.llm.handle import Handle, StreamEvent, begin, sound
from unspool.llm.partners import Partners
from unspool.llm.prompts import Request, items, one, single
from unspool.llm.resolve import named, resolve
from unspool.llm.results import Choice, Output
from unspool.llm.score import ScoredToken, parts, score_of
from unspool.llm.searches import OWNED
from unspool.llm.steps import Steps
from unspool.llm.worker import Worker
from unspool.rules.watermarks import Detection, detect, watermark_of
from unspool.strategies import Force

SHAPING = ("strategy", "do_sample", *(
    name for name, row in fields().items() if row.group not in (
        "strategy", "length and stopping", "what comes back", "prompt and text")))


class LLM:
    """Made by `load`. Close it, or use it as a context manager, to give memory back.

    A prompt is a string, a list of ids, or chat messages; a list of prompts is a batch, with
    results in its order. In a batch a request that is refused or fails becomes an output with
    `error` set, and harms no other; alone it raises. What is wrong with a call's own parameters
    raises in both.
    """

    def __init__(self, model: Model, facts: Facts, memory: Memory,
                 scheduler: Scheduler | None = None) -> None:
        self.partners = Partners(facts.numerics)
        self.model, self.facts = model, replace(facts, partner=self.partners.of)
        self.worker = Worker(Engine(model, memory, scheduler))
        self.tokenizer, self.name, self.numerics = facts.tokenizer, facts.name, facts.numerics
        self.context, self.notes, self.defaults = facts.context, facts.notes, facts.defaults
        self.device = model.device

    def generate(self, prompt: Any, **params: Any) -> Any:
        """Continue a prompt, or each of a batch. Returns an Output, or a list of them.

        Raises ParameterError, PromptError or what the engine met, each naming value and fix.
        """
        asked, batch = self.ask(prompt, params)
        outputs = answers(asked)
        return outputs if batch else sound(outputs[0])

    def stream(self, prompt: Any, **params: Any) -> Iterator[StreamEvent]:
        """The events of a request or of a batch as they come. Leaving the loop cancels the rest."""
        queue: SimpleQueue[StreamEvent] = SimpleQueue()
        return follow(*self.ask(prompt, params, queue), queue)

    def submit(self, request: Any, **params: Any) -> Handle:
        """Start one request and return at once: iterate, await or cancel the handle."""
        handle = self.handle(single(request, params))
        begin([handle])
        return handle

    def next(self, prompt: Any, **params: Any) -> Any:
        """The distribution of the next token; raw unless parameters shape it.

        One prompt gives a Distribution, a batch a list of them. The model's own defaults do not
        count here. Raises ParameterError for parameters that ask for more than one distribution.
        """
        asked, batch = items(prompt)
        handles = [self.look(one(item, params)) for item in asked]
        try:
            begin(handles)
            found = [distribution(handle) for handle in handles]
        finally:
            cancel(handles)
        return found if batch else found[0]

    def steps(self, prompt: Any, **params: Any) -> Steps:
        """Write token by token: iterate, look at each distribution, choose the token if you like.

        The finished text is in `output` when the loop is over.
        """
        handle = self.handle(single(prompt, params), {"held": True, "keep_rows": True})
        settled, request = handle.resolved.params, handle.resolved.request
        for name in ("n", "num_beams"):
            asked = settled.strategy is not None or name in handle.resolved.origin
            if asked and settled.active(name) is not None:
                raise ParameterError(f"{name}={getattr(settled, name)}: steps follow one text; "
                                     f"make it {name}=1", name)
        for stage in request.stages:
            if stage.strategy.searching or stage.takes > 1:
                raise ParameterError(f"strategy={shown(str(stage.strategy))}: steps follow one "
                                     "text, and here several compete; use greedy or sample",
                                     "strategy")
            if stage.entropy_above is not None:
                raise ParameterError(f"strategy: entropy_above={stage.entropy_above:g}: it ends a "
                                     "stage between two steps; end it by tokens, step, text or "
                                     "regex", "strategy")
        return Steps(handle)

    def score(self, text: Any, given: Any = None) -> Any:
        """How likely each token of `text` is, after `given` (a prompt of any kind) if there is one.

        A text is a string or a list of ids; a list of texts gives a list of Scores, all after the
        same `given`. Without `given` and without a start token, the first token has no
        log-probability and is not counted. Raises PromptError.
        """
        texts, batch = items(text)
        judged = [self.judge(item, given) for item in texts]
        outputs = map(sound, answers([asked for asked, _ in judged]))
        out = [score_of(o, first) for o, (_, first) in zip(outputs, judged, strict=True)]
        return out if batch else out[0]

    def explain(self, prompt: Any = None, **params: Any) -> Explanation:
        """Every effective parameter, where it came from, and the stages in order. Runs nothing."""
        request = single(prompt, params)
        ids = [0] if prompt is None else self.facts.encode(request.prompt, named(request.params))
        return explanation(resolve(self.facts, ids, request.params), self.notes)

    def against(self, prompt: Any, order: Any = "vllm", ours: Any = None, **params: Any
                ) -> Difference:
        """Write a text in the order `ours` (unset: this program's own), and say which token would
        differ first in `order`, and which rule makes it differ.

        Both are dialects or lists of stages. The rules of both shape the same rows of the model,
        with the same noise. Raises ParameterError for parameters that either order refuses.
        """
        request = single(prompt, params)
        given = {"order": ours, **request.params}
        steps = self.steps(request.prompt, **given)
        mine = steps.handle.resolved.request
        theirs = resolve(self.facts, list(mine.prompt),
                         {**named(given).given(), "order": order, "seed": mine.seed})
        return against(steps, theirs)

    def detect(self, text: Any, watermark: Any, given: Any = None, **options: Any) -> Detection:
        """Whether a text carries a watermark: an Output or Choice, a string or a list of ids.

        `watermark`: what the parameter of that name was. `given`: what stood before the text, if it
        is known; it is not judged. `options`: see `rules.watermarks.detect`. The tokens of a string
        are those that the tokenizer makes of it, which may be others than were written.
        Raises ParameterError, PromptError.
        """
        mark = watermark_of(watermark, self.facts.vocab)
        before = () if given is None else self.facts.encode(given, Params())
        ids = getattr(text, "token_ids", None)
        if ids is None:
            ids = self.facts.words(text, start=False) if isinstance(text, str) else (
                self.facts.check(text))
        if before and mark.name != "synthid":  # whose context is of written tokens alone
            options["context"] = before
        return detect(ids, mark, **options)

    def close(self) -> None:
        """End what runs, stop the engine's thread, free weights and memory."""
        self.worker.close()
        self.partners.close()
        if self.tokenizer is not None:
            self.tokenizer.close()

    def __repr__(self) -> str:
        return f"LLM({self.name}, numerics {self.numerics}, on {self.device})"

    def __enter__(self) -> LLM:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    # ── from requests to handles that have yet to begin ──────────────────────────────────────────
    def ask(self, given: Any, params: Mapping[str, Any],
            queue: SimpleQueue[StreamEvent] | None = None) -> tuple[list[Handle | Output], bool]:
        """A handle for each request, or the output that says why there is none."""
        asked, batch = items(given)
        if not batch:
            return [self.handle(one(given, params), queue=queue)], False
        resolve(self.facts, [0], params)  # what is wrong with them is wrong for all
        return [self.attempt(item, params, i, queue) for i, item in enumerate(asked)], True

    def attempt(self, item: Any, params: Mapping[str, Any], index: int,
                queue: SimpleQueue[StreamEvent] | None) -> Handle | Output:
        self.worker.check_open()
        try:
            return self.handle(one(item, params), None, index, queue)
        except UnspoolError as error:
            refused = item if not isinstance(item, Request) else item.prompt
            return Output(refused, self.name, self.numerics, (), Usage(), dict(params), self.notes,
                          error=error)

    def handle(self, request: Request, extra: Mapping[str, Any] | None = None,
               index: int = 0, queue: SimpleQueue[StreamEvent] | None = None) -> Handle:
        self.worker.check_open()
        ids = self.facts.encode(request.prompt, named(request.params))
        resolved = resolve(self.facts, ids, request.params, extra)
        return Handle(self.facts, request.prompt, resolved, self.worker, index, queue)

    def look(self, request: Request) -> Handle:
        """A request that waits before its first token."""
        self.worker.check_open()
        user = named(request.params)
        for name, row in fields().items():
            writes = row.group in ("length and stopping", "what comes back")
            searches = name in OWNED or name == "n" or (
                name == "strategy" and user.strategy not in ("greedy", "sample"))
            if user.active(name) is not None and (writes or searches):
                raise ParameterError(f"{name}={shown(getattr(user, name))}: next reads one "
                                     "distribution and writes nothing; leave it out", name)
        ids = self.facts.encode(request.prompt, user)
        # Nothing is written, so a full context is no hindrance.
        facts = replace(self.facts, defaults={}, context=self.context + 1)
        given = {**user.given(), "max_new_tokens": 1}
        free = user.strategy is None and user.do_sample is None and user.temperature != 0
        if free and not user.given().keys().isdisjoint(SHAPING):
            given["do_sample"] = True  # all that the rules leave, not the likeliest token alone
        resolved = resolve(facts, ids, given, {"held": True, "keep_rows": True})
        return Handle(self.facts, request.prompt, resolved, self.worker)

    def judge(self, text: Any, given: Any) -> tuple[Handle | Output, ScoredToken | None]:
        """A request that writes exactly `text`, and the token that it cannot judge."""
        self.worker.check_open()
        before, ids, first = parts(self.facts, text, given)
        if not ids:
            empty = Choice("", (), "length", None, 0.0)
            return Output(text, self.name, self.numerics, (empty,), Usage(prompt=1), {},
                          self.notes), first
        resolved = resolve(replace(self.facts, defaults={}), before, {
            "strategy": Force(tuple(ids)), "max_new_tokens": len(ids), "ignore_eos": True})
        return Handle(self.facts, text, resolved, self.worker), first


def handles_of(asked: Iterable[Handle | Output]) -> list[Handle]:
    return [handle for handle in asked if isinstance(handle, Handle)]


def cancel(handles: Iterable[Handle]) -> None:
    for handle in handles:
        if not handle.done:
            handle.cancel()


def answers(asked: list[Handle | Output]) -> list[Output]:
    """Begin what was asked and wait for all of it."""
    handles = handles_of(asked)
    try:
        begin(handles)
        return [h if isinstance(h, Output) else h.future.result() for h in asked]
    finally:
        cancel(handles)


def follow(asked: list[Handle | Output], batch: bool, queue: SimpleQueue[StreamEvent]
           ) -> Iterator[StreamEvent]:
    """Begin what was asked and tell its events, which all come by one queue."""
    handles = handles_of(asked)
    for i, output in enumerate(asked):
        if isinstance(output, Output):
            queue.put(StreamEvent("finish", i, output=output))
    left = len(asked)
    try:
        begin(handles)
        while left:
            event = queue.get()
            left -= event.output is not None
            yield event
            if event.output is not None and not batch:
                sound(event.output)
    finally:
        cancel(handles)


def distribution(handle: Handle) -> Distribution:
    """What a request that waits before its first token has before it."""
    asked = any(handle.resolved.origin.get(name) == "user" for name in SHAPING)
    for event in handle:
        if event.slot is not None:
            row: Any = event.slot.row
            return (shaped if asked else raw)(handle.prompt, row, handle.facts)
    raise UnspoolError("the model was closed before the distribution was read: load it again")
