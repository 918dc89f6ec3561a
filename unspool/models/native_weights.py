"""The weights of a decoder as the compiled forward wants them: packed, biases joined and padded."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unspool.kernels.weights.activations import F32, I8, I16
from unspool.kernels.weights.matmul import ROWS
from unspool.models.config import Config
from unspool.models.packed import Matrix, Packer
from unspool.models.weights import EMBEDDING, HEAD, NORM

Vector = NDArray[np.float32]
Pending = list[Callable[[], Matrix]]


@dataclass(frozen=True, slots=True)
class Linear:
    """Matrices below each other, in as many pieces as they have formats, and their bias."""

    pieces: list[Matrix]
    bias: Vector | None = None

    def forms(self, numerics: str) -> list[int]:
        """The forms of activations that its pieces want."""
        return sorted({form_of(piece, numerics) for piece in self.pieces})


@dataclass(frozen=True, slots=True)
class Layer:
    norm: Vector
    qkv: Linear
    q_norm: Vector | None
    k_norm: Vector | None
    out: Linear
    mlp_norm: Vector
    gate_up: Linear
    down: Linear


@dataclass(frozen=True, slots=True)
class Weights:
    embedding: Matrix
    layers: list[Layer]
    norm: Vector
    head: Linear

    def forms(self, numerics: str) -> set[int]:
        linears = [linear for layer in self.layers
                   for linear in (layer.qkv, layer.out, layer.gate_up, layer.down)]
        return {form for linear in [*linears, self.head] for form in linear.forms(numerics)}

    @property
    def nbytes(self) -> int:
        """Of the packed matrices that every token reads."""
        linears = [linear for layer in self.layers
                   for linear in (layer.qkv, layer.out, layer.gate_up, layer.down)]
        return sum(p.data.nbytes for linear in [*linears, self.head] for p in linear.pieces)


def form_of(matrix: Matrix, numerics: str) -> int:
    if not matrix.format.quantised:
        return F32
    return I8 if numerics == "fast" else I16


def read(config: Config, packer: Packer) -> Weights:
    """Everything is handed to the packer's threads before the first result is waited for."""
    pending = [_begin(packer, f"model.layers.{i}.") for i in range(config.layers)]
    embedding = packer.matrices([EMBEDDING])
    head = embedding if config.tied else packer.matrices([HEAD])
    layers = [_finish(config, packer, f"model.layers.{i}.", parts)
              for i, parts in enumerate(pending)]
    return Weights(embedding[0](), layers, packer.vector(NORM), Linear([head[0]()]))


GROUPS = {
    "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "out": ("self_attn.o_proj",),
    "gate_up": ("mlp.gate_proj", "mlp.up_proj"),
    "down": ("mlp.down_proj",),
}


def _begin(packer: Packer, prefix: str) -> dict[str, Pending]:
    return {group: packer.matrices([f"{prefix}{name}.weight" for name in names])
            for group, names in GROUPS.items()}


def _finish(config: Config, packer: Packer, prefix: str, parts: dict[str, Pending]) -> Layer:
    biased = {"qkv": config.qkv_bias, "out": config.out_bias, "gate_up": config.mlp_bias,
              "down": config.mlp_bias}
    linear = {
        group: Linear(
            [piece() for piece in pieces],
            _bias(packer, [f"{prefix}{name}.bias" for name in GROUPS[group]])
            if biased[group] else None,
        )
        for group, pieces in parts.items()
    }

    def head_norm(which: str) -> Vector | None:
        return packer.vector(f"{prefix}self_attn.{which}_norm.weight") if config.qk_norm else None

    return Layer(
        norm=packer.vector(f"{prefix}input_layernorm.weight"),
        q_norm=head_norm("q"),
        k_norm=head_norm("k"),
        mlp_norm=packer.vector(f"{prefix}post_attention_layernorm.weight"),
        **linear,
    )


def _bias(packer: Packer, names: Sequence[str]) -> Vector:
    """Joined, with zeros for the rows that are padding."""
    parts = [packer.vector(name) for name in names]
    return np.concatenate([*parts, np.zeros(2 * ROWS, np.float32)])
