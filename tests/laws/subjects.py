"""What the laws are held for: models, each with how equal its answers have to be.

The reference computes in float64, and its products may differ in their last bits. The compiled
models compute in numerics `default`: whatever is equal is equal bit for bit. They are wide enough
that every sum over columns has several blocks, whose order would show.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from models_zoo import tiny
from packed_zoo import compiled

VOCAB = 24
OTHER = "another model"  # of the same kind, with other weights: what a voice may name
CLOSE = 1e-9
ROUNDED = 1e-4  # a float32 copy of a row rounds what its rules make; by definition they are float64
SIZES = {"hidden_size": 128, "intermediate_size": 192, "std": 0.15,
         "max_position_embeddings": 1024}


class Subject:
    """`build(vocab, **options)` makes the model; it is made once for each set of options.

    `close`: how far apart equal numbers may be; 0: bit for bit.
    """

    def __init__(self, build: Callable[..., Any], close: float = 0.0) -> None:
        self.build, self.close = build, close
        self.models: dict[object, Any] = {}

    @property
    def exact(self) -> bool:
        return self.close == 0

    def model(self, vocab: int = VOCAB, **options: Any) -> Any:
        """`seed`: other weights; `threads`: of the compiled path."""
        key = vocab, *sorted(options.items())
        if key not in self.models:
            self.models[key] = self.build(vocab, **options)
        return self.models[key]

    @property
    def other(self) -> Any:
        return self.model(seed=7)

    def equal(self, a: float, b: float) -> bool:
        return a.hex() == b.hex() if self.exact else abs(a - b) < self.close

    def close_all(self) -> None:
        for model in self.models.values():
            model.close()
        self.models.clear()


# ── the models ───────────────────────────────────────────────────────────────────────────────────
def reference() -> Subject:
    return Subject(lambda vocab, seed=0: tiny(vocab_size=vocab, seed=seed), CLOSE)


def on_cpu(family: str = "llama", type: str = "F32", kv: str = "f32", **features: Any) -> Subject:
    """The compiled path, on two threads unless others are asked for."""

    def build(vocab: int, threads: int = 2, **seed: int) -> Any:
        sizes = {**SIZES, **features, **seed}
        decoder = tiny(family, dtype="float32", vocab_size=vocab, **sizes)
        return compiled(decoder, type=type, kv=kv, threads=threads)

    return Subject(build)


class Blas:
    """A layer's product through numpy's `@`: the library chooses how to sum by the rows it gets."""

    def __init__(self, weight: torch.Tensor) -> None:
        self.transposed = weight.numpy().T

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x.numpy() @ self.transposed)


def on_blas() -> Subject:
    """Not a subject of the laws: the float32 decoder whose products go through BLAS, held to bits.
    """

    def build(vocab: int, threads: int = 1, **seed: int) -> Any:
        sizes = {**SIZES, "hidden_size": 320, "intermediate_size": 512, **seed}
        decoder = tiny(dtype="float32", vocab_size=vocab, **sizes)
        for layer in decoder.stack:
            for name in ("q", "k", "v", "out", "gate", "up", "down"):
                setattr(layer, name, Blas(getattr(layer, name).weight))
        return decoder

    return Subject(build)


SUBJECTS: dict[str, Callable[[], Subject]] = {
    "reference": reference,
    "llama F32": on_cpu,
    "qwen3 Q8_0": lambda: on_cpu("qwen3", "Q8_0", head_dim=16, attention_bias=True),
}
# Every kind of weights and of keys, every family; minutes, not seconds.
MORE: dict[str, Callable[[], Subject]] = {
    "llama Q4_1": lambda: on_cpu(type="Q4_1"),
    "llama Q4_0, int8 keys": lambda: on_cpu(type="Q4_0", kv="int8"),
    "llama BF16, bf16 keys": lambda: on_cpu(type="BF16", kv="bf16"),
    "mistral F16": lambda: on_cpu("mistral", "F16", sliding_window=8),
    "qwen2 Q8_0": lambda: on_cpu("qwen2", "Q8_0", use_sliding_window=True, sliding_window=8,
                                 max_window_layers=1, std=0.1),
    "llama Q4_0, wide": lambda: on_cpu(type="Q4_0", hidden_size=256, intermediate_size=512,
                                       num_attention_heads=8, std=0.1, seed=1),
}
