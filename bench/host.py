"""What a step costs beside the model: everything from its rows of logits to the text that is told.

A model that costs nothing gives rows that the default model gave before, after texts of many kinds.
All else is real: prompts, requests, memory, rules, noise, events, text. `python` is a step without
the time in compiled kernels, `kernels` that time: a model that takes the facts of its rows as it
makes them, or runs kernels on several threads, saves a part of the second.
Measure on a quiet machine.
"""
from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

import numpy as np

from bench.figure import Figure, at_most, seen
from bench.pair import ids, ours
from bench.texts import TEXTS
from unspool.core.sockets import Span
from unspool.kernels.machine.jit import Kernel
from unspool.llm.llm import LLM
from unspool.llm.prompts import Request
from unspool.memories import Dense
from unspool.memories.none import Blank

STEPS, RUNS = 50, 5
BATCHES = {1: 0.3, 64: 3.0}  # rows in a step, and the milliseconds of Python it may take
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0},
    "temperature 0.8, top_p 0.95": {"temperature": 0.8, "top_p": 0.95},
    "temperature 0.8": {"temperature": 0.8, "top_p": 1.0},
}


class Replay:
    """Gives the same rows at every forward, whatever it reads."""

    numerics, device, fingerprint, remembers = "replayed", "cpu", "replayed", True
    notes: tuple[str, ...] = ()
    layers = width = 0
    tied = False

    def __init__(self, logits: Any) -> None:
        self.logits, (_, self.vocab), self.context = logits, logits.shape, ours().context

    def score(self, spans: Sequence[Span]) -> Replay:
        self.wanted = sum(span.rows for span in spans)
        return self

    def rows(self) -> Any:
        return self.logits[:self.wanted]

    def close(self) -> None:
        return None


class Watch:
    """Adds up the seconds spent in kernels."""

    def __init__(self) -> None:
        self.seconds, self.call = 0.0, Kernel.__call__

    def __enter__(self) -> Watch:
        def timed(kernel: Kernel, *arguments: Any) -> Any:
            begun = time.perf_counter()
            out = self.call(kernel, *arguments)
            self.seconds += time.perf_counter() - begun
            return out

        setattr(Kernel, "__call__", timed)  # noqa: B010  # no one else's business
        return self

    def __exit__(self, *error: object) -> None:
        setattr(Kernel, "__call__", self.call)  # noqa: B010


def figures() -> Iterator[Figure]:
    replay = Replay(rows(max(BATCHES)))
    for batch, bound in BATCHES.items():
        for way, params in WAYS.items():
            python, kernels = takes(replay, batch, params)
            what = f"{way}, {batch} row{'s' * (batch > 1)}"
            yield at_most(f"{what}: python", python, bound, "ms", f"median of {RUNS * STEPS}")
            yield seen(f"{what}: kernels", kernels, "ms", "one thread")


def rows(count: int) -> Any:
    """Rows of the default model: the last ones after each text."""
    texts = [ids(text) for text in TEXTS]
    spans = [Span(Blank(), text, 0, min(len(text), 4)) for text in texts]
    found = np.concatenate([ours().model.score([span]).rows().copy() for span in spans])
    return found[np.random.default_rng(0).permutation(len(found))[:count]]


def takes(model: Replay, batch: int, params: dict[str, Any]) -> tuple[float, float]:
    """Milliseconds of a step in Python and in kernels, the prompts' own step excepted."""
    python, kernels = [], []
    for _ in range(RUNS):
        llm = LLM(model, ours().facts, Dense())
        loop = llm.worker.loop
        asked = [llm.handle(Request(TEXTS[i % len(TEXTS)], **{
            "seed": i, "ignore_eos": True, "max_new_tokens": STEPS + 2, **params}))
            for i in range(batch)]
        loop.begin([(handle.resolved.request, handle.tell) for handle in asked])
        loop.step()
        for _ in range(STEPS):
            with Watch() as watch:
                begun = time.perf_counter()
                loop.step()
                spent = time.perf_counter() - begun
            python.append(1000 * (spent - watch.seconds))
            kernels.append(1000 * watch.seconds)
        if len(loop.engine.jobs) != batch:
            raise AssertionError("a text ended early")
    return median(python), median(kernels)
