"""Lets a transformers model run many texts in one forward, each with its own remembered keys.

Registered under transformers' attention interface. All tokens pass as one row; here, per span, the
lease's store keeps its keys and the reference kernel attends. Whatever an attention layer asks for
beyond that is refused, so that the caller can fall back to plain forwards.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface

from unspool.core.sockets import Span
from unspool.kernels import reference
from unspool.models import batch
from unspool.models.rope import UnsupportedError
from unspool.models.torch_store import store_of

NAME = "unspool"
# Arguments that change no number here: masks and places are the spans', dropout is off in eval,
# hidden states are gathered by who calls the layers.
NEUTRAL = {
    "position_ids",
    "position_embeddings",
    "use_cache",
    "return_dict",
    "output_hidden_states",
    "is_causal",
    "dropout",
}


@dataclass(slots=True)
class Packed:
    """The spans of one forward, and the window that each layer asked for."""

    spans: Sequence[Span]
    windows: dict[int, int | None] = field(default_factory=dict)


def attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **asked: Any,
) -> tuple[Tensor, None]:
    """query: [1, heads, tokens, size]; key, value: [1, kv_heads, tokens, size].

    Returns [1, tokens, heads, size]. Raises UnsupportedError for a mask of the model's own or an
    argument that is not understood, such as `softcap` or `s_aux`.
    """
    packed: Packed = asked.pop("packed")
    scaling, window = asked.pop("scaling", None), asked.pop("sliding_window", None)
    if attention_mask is not None:
        raise UnsupportedError("an attention mask of its own")
    if not getattr(module, "is_causal", True) or asked.get("is_causal") is False:
        raise UnsupportedError("attention that is not causal")
    for name, given in asked.items():
        if name not in NEUTRAL and given is not None and given is not False:
            raise UnsupportedError(f"the attention argument {name}")
    packed.windows[module.layer_idx] = window
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    q, k, v = (x.squeeze(0).transpose(0, 1) for x in (query, key, value))
    seen = []
    for span, at in batch.slices(packed.spans):
        store = store_of(span.lease)
        keys, values = store.keep(module.layer_idx, span.start, k[at], v[at])
        seen.append(
            reference.attend(q[at], keys, values, span.start, window=window, scale=float(scale))
        )
    return torch.cat(seen).unsqueeze(0), None


AttentionInterface.register(NAME, attention)


@contextmanager
def instead(config: Any) -> Iterator[None]:
    """Within it, models of this config attend through `attention`; then as before."""
    before = config._attn_implementation
    config._attn_implementation = NAME
    try:
        yield
    finally:
        config._attn_implementation = before
