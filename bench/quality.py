"""How far the fast ways of computing are from float64, on the same file and the same 2,000 tokens.

The texts are prose, source code of Python's own library, and the short ones of `bench/texts.py` in
many languages, cut into windows that are each read at once. Measured against the rows of our own
reference in float64: the relative error of the logits, the Kullback-Leibler divergence of the
distributions, and what becomes of the perplexity. llama.cpp is measured too where `make peers` has
installed it.
"""
from __future__ import annotations

import heapq
import inspect
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import unspool
from bench.figure import Figure, at_most, seen
from bench.texts import TEXTS
from unspool.bench.prompts import TEXT
from unspool.core.sockets import Span
from unspool.files import store
from unspool.memories.none import Blank

ROOT = Path(__file__).resolve().parent.parent
PEER = ROOT / ".venv-peers" / "bin" / "python"
WINDOW, WINDOWS = 250, 8
LIMIT_S = 300

# Bounds of `default`: relative error, mean KL in nats, perplexity in percent.
ERROR, KL, PERPLEXITY = 2e-4, 1e-5, 0.02

Floats = NDArray[np.float64]
Read = Callable[[list[int]], NDArray[Any]]


@dataclass
class Distance:
    """What was added up over windows of logits, each [tokens, vocabulary], beside float64's."""

    wrong: float = 0.0  # squares
    right: float = 0.0
    largest: float = 0.0
    agreed: int = 0
    kl: list[float] = field(default_factory=list)
    lost: list[float] = field(default_factory=list)  # log-probability of the text's own tokens
    lost_in_truth: list[float] = field(default_factory=list)

    def add(self, rows: NDArray[Any], truth: Floats, tokens: Sequence[int]) -> None:
        """`tokens`: those the rows are after; every row but the last foretells one of them."""
        gap = rows.astype(np.float64) - truth
        self.wrong += float((gap**2).sum())
        self.right += float((truth**2).sum())
        self.largest = max(self.largest, float(np.abs(gap).max()))
        self.agreed += int((rows.argmax(-1) == truth.argmax(-1)).sum())
        ours, theirs = log_softmax(rows.astype(np.float64)), log_softmax(truth)
        self.kl += (np.exp(theirs) * (theirs - ours)).sum(-1).tolist()
        place = np.arange(len(tokens) - 1), np.array(tokens[1:])
        self.lost += ours[place].tolist()
        self.lost_in_truth += theirs[place].tolist()

    @property
    def error(self) -> float:
        return float((self.wrong / self.right) ** 0.5)

    @property
    def perplexity(self) -> float:
        """Of the texts, in percent more than float64's."""
        return float(100 * np.expm1(np.mean(self.lost_in_truth) - np.mean(self.lost)))


def log_softmax(rows: Floats) -> Floats:
    shifted = rows - rows.max(-1, keepdims=True)
    result: Floats = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return result


def windows(encode: Callable[[str], list[int]], size: int, count: int) -> list[list[int]]:
    """`count` windows of the texts, taken in turn so that few are of every kind."""
    kinds = [encode(text) for text in (TEXT, inspect.getsource(heapq), "\n\n".join(TEXTS))]
    cut = [[ids[at:at + size] for at in range(0, len(ids) - size + 1, size)] for ids in kinds]
    turns = [kind[turn] for turn in range(count) for kind in cut if turn < len(kind)]
    if len(turns) < count:
        raise ValueError(f"the texts have {len(turns)} windows of {size} tokens, not {count}")
    return turns[:count]


def reader(lm: unspool.LLM) -> Read:
    """Reads one window whole; the rows hold until the next."""

    def read(tokens: list[int]) -> NDArray[Any]:
        rows: NDArray[Any] = lm.model.score([Span(Blank(), tokens, 0, len(tokens))]).rows()
        return rows

    return read


def distances(ways: Mapping[str, Read], truth: Read,
              texts: Sequence[list[int]]) -> dict[str, Distance]:
    """Window by window, so that the rows of one window at a time are in memory."""
    found = {way: Distance() for way in ways}
    for tokens in texts:
        right = truth(tokens).astype(np.float64)
        for way, read in ways.items():
            found[way].add(read(tokens), right, tokens)
    return found


def of_peer(folder: str, texts: Sequence[list[int]]) -> Read:
    """llama.cpp's rows of these texts, computed in a process of its own."""
    path = str(store.find(store.DEFAULT))
    asked = json.dumps({"model": path, "texts": texts, "folder": folder})
    done = subprocess.run([str(PEER), str(ROOT / "bench" / "llama_rows.py")], input=asked,
                          text=True, capture_output=True, timeout=LIMIT_S, check=False)
    if done.returncode:
        raise RuntimeError(f"llama.cpp: {done.stderr.strip().splitlines()[-1:]}")

    def read(tokens: list[int]) -> NDArray[Any]:
        rows: NDArray[Any] = np.load(Path(folder) / f"{list(texts).index(tokens)}.npy")
        return rows

    return read


def measure(size: int, count: int, peer: bool) -> dict[str, Distance]:
    """The distances of `default`, `fast` and, if asked for, llama.cpp on so many windows."""
    loaded = {way: unspool.load(numerics=way) for way in ("default", "fast")}
    words = loaded["default"].facts.needs_text("a measurement")
    texts = windows(lambda text: words.encode(text, start=False), size, count)
    ways = {way: reader(lm) for way, lm in loaded.items()}
    with tempfile.TemporaryDirectory() as folder:
        if peer:
            ways["llama.cpp"] = of_peer(folder, texts)
        with unspool.load(dtype="float64") as exact:
            found = distances(ways, reader(exact), texts)
    for lm in loaded.values():
        lm.close()
    return found


def told(found: Mapping[str, Distance]) -> Iterator[Figure]:
    for way, d in found.items():
        tokens, bounded = len(d.kl), way == "default"
        yield bound(f"{way}: relative error of logits", d.error, ERROR, bounded)
        yield seen(f"{way}: largest difference of a logit", d.largest)
        yield bound(f"{way}: mean KL from float64", float(np.mean(d.kl)), KL, bounded, "nats")
        yield seen(f"{way}: largest KL", max(d.kl), "nats")
        yield bound(f"{way}: perplexity, change", abs(d.perplexity), PERPLEXITY, bounded, "%",
                    f"{np.exp(-np.mean(d.lost_in_truth)):.4f}, {d.perplexity:+.2g} %")
        yield seen(f"{way}: likeliest token is float64's", d.agreed, note=f"of {tokens}")


def bound(what: str, measured: float, most: float, bounded: bool, unit: str = "",
          note: str = "") -> Figure:
    return at_most(what, measured, most, unit, note) if bounded else seen(what, measured, unit,
                                                                          note)


def figures() -> Iterator[Figure]:
    yield from told(measure(WINDOW, WINDOWS, PEER.exists()))
