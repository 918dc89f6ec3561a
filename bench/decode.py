"""Tokens a second of the reference path on the default model, beside transformers' own."""
from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

import torch

from bench.figure import Figure, seen
from bench.pair import asked, ids, ours, peer
from bench.texts import LONG, TEXTS
from unspool.engine.engine import Engine
from unspool.memories import Dense

STEPS, RUNS = 32, 3
BATCHES = (1, 8)


def figures() -> Iterator[Figure]:
    threads = f"{torch.get_num_threads()} threads, median of {RUNS}"
    once = {weight.data_ptr(): weight.nbytes for weight in peer().parameters()}
    weights = sum(once.values())  # the tied head counts once
    speed = weights / median(reading_takes(weights) for _ in range(RUNS))
    yield seen("memory read", speed / 1e9, "GB/s", threads)
    yield seen("if a token cost one reading of all weights", speed / weights, "tok/s",
               f"{weights / 1e6:.0f} MB of float32")
    for batch in BATCHES:
        rate = batch * STEPS / median(ours_takes(batch) for _ in range(RUNS))
        yield seen(f"decode, batch {batch}", rate, "tok/s", threads)
    yield seen("transformers, batch 1", STEPS / median(peer_takes() for _ in range(RUNS)), "tok/s",
               threads)
    text = ids(LONG * 3)[:512]
    rate = len(text) / median(prefill_takes(text) for _ in range(RUNS))
    yield seen(f"prefill, {len(text)} tokens", rate, "tok/s", threads)


def reading_takes(size: int) -> float:
    """Seconds to add up as many bytes as the weights have."""
    numbers = torch.ones(size // 4)
    begun = time.perf_counter()
    numbers.sum()
    return time.perf_counter() - begun


def ours_takes(batch: int) -> float:
    """Seconds of STEPS steps of the engine, the prompts' own excepted."""
    engine = Engine(ours().model, Dense())
    for text in TEXTS[:batch]:
        engine.add(asked(ids(text), STEPS + 1))
    engine.step()
    begun = time.perf_counter()
    for _ in range(STEPS):
        engine.step()
    spent = time.perf_counter() - begun
    if engine.jobs:
        raise AssertionError("the steps did not write the texts")
    return spent


def peer_takes() -> float:
    """Seconds of STEPS tokens after the first: the difference of two calls of generate."""
    prompt = torch.tensor([ids(TEXTS[0])])
    spent = []
    for new in (1, STEPS + 1):
        begun = time.perf_counter()
        peer().generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=new,
                        do_sample=False)
        spent.append(time.perf_counter() - begun)
    return spent[1] - spent[0]


def prefill_takes(text: list[int]) -> float:
    engine = Engine(ours().model, Dense())
    engine.add(asked(text, 1))
    begun = time.perf_counter()
    engine.step()
    return time.perf_counter() - begun
