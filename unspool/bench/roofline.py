"""The roofline: how fast memory is read here, how much of it a token reads, and the share reached.

At batch 1 every token reads every weight once, so no engine writes more tokens a second than the
memory's bandwidth divided by the weights' bytes. Plain arithmetic; the readers run elsewhere.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from statistics import median
from typing import Any

from unspool.files.folder import Source
from unspool.files.gguf import read_gguf
from unspool.files.safetensors import read_safetensors

HIGHEST_SHARE = 1.05  # above it the probe has failed: nothing reads faster than memory
# What the kernels compute with as it is stored.
PACKED = frozenset({"Q4_0", "Q4_1", "Q8_0", "Q4_K", "Q6_K", "F32", "BF16", "F16"})
# The embedding of a model with a head of its own: a token reads one row of it.
EMBEDDINGS = {"token_embd.weight": "output.weight",
              "model.embed_tokens.weight": "lm_head.weight"}


@dataclass(slots=True)
class Kind:
    """The tensors of one stored type: how many, their bytes as stored, and their values."""

    tensors: int = 0
    bytes: int = 0
    values: int = 0


@dataclass(frozen=True, slots=True)
class Weights:
    """The tensors that one token reads, by their stored type."""

    kinds: Mapping[str, Kind]

    def read_by(self, numerics: str) -> int:
        """Bytes a token. The reference computes with float32; the others with what is stored, but
        for types without a kernel of their own, which are unpacked to float32 too.
        """
        packed = () if numerics == "reference" else PACKED
        return sum(kind.bytes if name in packed else 4 * kind.values
                   for name, kind in self.kinds.items())

    def json(self) -> list[dict[str, Any]]:
        return [{"type": name, "tensors": kind.tensors, "bytes": kind.bytes}
                for name, kind in self.kinds.items()]


def weights_of(source: Source) -> Weights:
    """What a token reads of a model's file. Raises ModelError when it cannot be read."""
    tensors = (read_gguf(source.weights).tensors if source.kind == "gguf"
               else read_safetensors(source.weights))
    kinds: dict[str, Kind] = {}
    for name, tensor in tensors.items():
        if EMBEDDINGS.get(name) not in tensors:
            kind = kinds.setdefault(tensor.type, Kind())
            kind.tensors += 1
            kind.bytes += len(tensor.raw)
            kind.values += prod(tensor.shape)
    return Weights(kinds)


def bandwidth(samples: Mapping[str, Sequence[float]]) -> float | None:
    """GB/s: the best reader's median. None without a reader."""
    return max((median(passes) for passes in samples.values() if passes), default=None)


def share(size: int, rate: float, gb_s: float | None) -> float | None:
    """The part of the bandwidth that `rate` tokens a second of `size` bytes use."""
    return None if not gb_s else size * rate / (gb_s * 1e9)
