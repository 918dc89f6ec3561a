"""Names and shapes of a decoder's weights, in transformers' spelling and in GGUF's.

Takes stored tensors from any file reader and hands over plain arrays under transformers' names. It
knows no file format's bytes and no number library but numpy.
"""
from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from unspool.core.errors import ModelError
from unspool.models.config import Config

Array = npt.NDArray[Any]
Shape = tuple[int, ...]

EMBEDDING, NORM, HEAD = "model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"
# Buffers that old checkpoints carry; they follow from the config.
DERIVED = re.compile(r"model\.(layers\.\d+\.self_attn\.)?rotary_emb\.\w+|rope_freqs\.weight")

GGUF_TOP = {EMBEDDING: "token_embd.weight", NORM: "output_norm.weight", HEAD: "output.weight"}
GGUF_PARTS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


class Stored(Protocol):
    """A tensor of a weights file, decoded when asked. `raw`: its bytes, (bytes,) of uint8."""

    @property
    def shape(self) -> Shape: ...
    @property
    def type(self) -> str: ...
    @property
    def raw(self) -> npt.NDArray[np.uint8]: ...
    def dequantised(self) -> npt.NDArray[np.float32]: ...
    def numpy(self) -> Array: ...


def expected(config: Config) -> dict[str, Shape]:
    """Every weight of the decoder with its shape; matrices are [out, in]."""
    names: dict[str, Shape] = {EMBEDDING: (config.vocab, config.width)}
    for layer in range(config.layers):
        names |= {f"model.layers.{layer}.{name}": s for name, s in _layer(config)}
    names[NORM] = (config.width,)
    if not config.tied:
        names[HEAD] = (config.vocab, config.width)
    return names


def _layer(config: Config) -> Iterator[tuple[str, Shape]]:
    width, inner, size = config.width, config.inner, config.size
    q, kv = config.heads * size, config.kv_heads * size
    yield "input_layernorm.weight", (width,)
    for part, out, of, bias in (
        ("self_attn.q_proj", q, width, config.qkv_bias),
        ("self_attn.k_proj", kv, width, config.qkv_bias),
        ("self_attn.v_proj", kv, width, config.qkv_bias),
        ("self_attn.o_proj", width, q, config.out_bias),
        ("mlp.gate_proj", inner, width, config.mlp_bias),
        ("mlp.up_proj", inner, width, config.mlp_bias),
        ("mlp.down_proj", width, inner, config.mlp_bias),
    ):
        yield f"{part}.weight", (out, of)
        if bias:
            yield f"{part}.bias", (out,)
    if config.qk_norm:
        yield "self_attn.q_norm.weight", (size,)
        yield "self_attn.k_norm.weight", (size,)
    yield "post_attention_layernorm.weight", (width,)


def gguf_name(name: str) -> str:
    """GGUF's name: `blk.3.attn_q.weight` for `model.layers.3.self_attn.q_proj.weight`."""
    if name in GGUF_TOP:
        return GGUF_TOP[name]
    _, _, layer, rest = name.split(".", 3)
    part, kind = rest.rsplit(".", 1)
    return f"blk.{layer}.{GGUF_PARTS[part]}.{kind}"


def take(
    stored: Mapping[str, Stored], config: Config, *, gguf: bool = False, wide: bool = False
) -> dict[str, Array]:
    """All weights of `config` as writable arrays, float32 (float64 where stored so, if `wide`).

    With `gguf`, `stored` has GGUF's names and, for Llama and Mistral, its order of rows in q and k.
    Raises ModelError naming what is missing, extra or of another shape.
    """
    check(stored, config, gguf=gguf)
    names = expected(config)

    def load(name: str) -> Array:
        tensor = stored[gguf_name(name) if gguf else name]
        array: Array = tensor.dequantised()
        if wide and tensor.type == "F64":
            array = tensor.numpy().copy()
        if gguf:
            unpermute(name, array, config)
        return array

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(names, pool.map(load, names), strict=True))


def check(stored: Mapping[str, Stored], config: Config, *, gguf: bool) -> None:
    """Raises ModelError naming weights that are missing, extra or of another shape."""
    names = expected(config)
    there = {gguf_name(name) if gguf else name: shape for name, shape in names.items()}
    if missing := sorted(there.keys() - stored.keys()):
        raise ModelError(_listing("the weights lack", missing, "fetch the whole model"))
    spare = {HEAD} if config.tied else set()
    extra = sorted(
        name for name in stored.keys() - there.keys() - spare if not DERIVED.fullmatch(name)
    )
    if extra:
        raise ModelError(_listing("the config has no place for", extra, "check its model_type"))
    for name, shape in there.items():
        if tuple(stored[name].shape) != shape:
            raise ModelError(
                f"tensor {name} has shape {tuple(stored[name].shape)}, the config asks for "
                f"{shape}: the weights and the config do not belong together"
            )


def _listing(what: str, names: list[str], fix: str) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{what} {', '.join(names[:3])}{more}: {fix}"


def row_order(name: str, config: Config) -> npt.NDArray[np.int64] | None:
    """Where GGUF keeps each row of a weight: `stored[order]` has the rows as transformers has them.

    None: in the same order. For the Llama architecture GGUF stores the two numbers of a rotary
    pair next to each other, while q and k here turn pairs (i, i + size / 2).
    """
    heads = {"q_proj": config.heads, "k_proj": config.kv_heads}.get(name.split(".")[-2])
    if heads is None or config.family not in ("llama", "mistral"):
        return None
    pairs = np.arange(heads * config.size).reshape(heads, config.size // 2, 2)
    return pairs.swapaxes(1, 2).reshape(-1)


def unpermute(name: str, array: Array, config: Config) -> None:
    """Put the rows of a weight out of a GGUF file, in place, into transformers' order."""
    order = row_order(name, config)
    if order is not None:
        array[...] = array[order]
