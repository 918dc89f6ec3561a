"""The decoder that the Llama families share, in plain torch.

It runs any Config on weights under transformers' names. It knows neither files nor where keys are
kept: a span's lease holds their store.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from unspool.core.sockets import Span
from unspool.kernels import reference
from unspool.models import batch
from unspool.models.config import Config
from unspool.models.planes import Planes, asked
from unspool.models.tensors import Rows
from unspool.models.torch_store import store_of
from unspool.models.weights import EMBEDDING, HEAD, NORM


@dataclass(frozen=True, slots=True)
class Linear:
    weight: Tensor  # [out, in]
    bias: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


class Layer:
    """One layer's weights, by name."""

    def __init__(self, weights: Mapping[str, Tensor], layer: int) -> None:
        prefix = f"model.layers.{layer}."

        def linear(part: str) -> Linear:
            return Linear(weights[f"{prefix}{part}.weight"], weights.get(f"{prefix}{part}.bias"))

        self.attention_norm = weights[f"{prefix}input_layernorm.weight"]
        self.q, self.k, self.v = (linear(f"self_attn.{p}_proj") for p in "qkv")
        self.out = linear("self_attn.o_proj")
        self.q_norm = weights.get(f"{prefix}self_attn.q_norm.weight")
        self.k_norm = weights.get(f"{prefix}self_attn.k_norm.weight")
        self.mlp_norm = weights[f"{prefix}post_attention_layernorm.weight"]
        self.gate, self.up = linear("mlp.gate_proj"), linear("mlp.up_proj")
        self.down = linear("mlp.down_proj")


class Decoder:
    """A Llama-like model: embedding, layers of attention and SwiGLU, norm, head.

    `weights`: tensors under the names of `weights.expected(config)`, all of one type and device.
    """

    numerics = "reference"
    remembers = True

    def __init__(
        self,
        config: Config,
        weights: Mapping[str, Tensor],
        fingerprint: str,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.config, self.fingerprint, self.notes = config, fingerprint, notes
        self.vocab, self.context = config.vocab, config.context
        self.layers, self.width, self.tied = config.layers, config.width, config.tied
        self.embedding = weights[EMBEDDING]
        self.stack = [Layer(weights, layer) for layer in range(config.layers)]
        self.norm = weights[NORM]
        self.head = self.embedding if config.tied else weights[HEAD]
        self.device = str(self.embedding.device)

    @torch.inference_mode()
    def score(self, spans: Sequence[Span]) -> Rows:
        """Logits [wanted tokens, vocab] in the type of the weights."""
        config, where = self.config, self.embedding.device
        hidden, layers = asked(spans, self.layers, self.width)
        inner: dict[int, Tensor] = {}
        wanted = torch.tensor(batch.wanted(spans), dtype=torch.long, device=where)
        rope, wide = config.rope, torch.promote_types(self.embedding.dtype, torch.float32)
        turned = reference.angles(batch.positions(spans), rope.frequencies, rope.factor)
        cos, sin = (t.to(wide).to(where) for t in turned)
        x = self.embedding[torch.tensor(batch.tokens(spans), dtype=torch.long, device=where)]
        for i, layer in enumerate(self.stack):
            if i in layers:
                inner[i] = self._logits(x[wanted])
            normed = reference.rms_norm(x, layer.attention_norm, config.eps)
            x = x + self._attention(i, normed, cos, sin, spans)
            normed = reference.rms_norm(x, layer.mlp_norm, config.eps)
            x = x + layer.down(reference.swiglu(layer.gate(normed), layer.up(normed)))
        states = reference.rms_norm(x if hidden else x[wanted], self.norm, config.eps)
        logits = self._logits(states[wanted] if hidden else states)
        return Rows(logits, Planes(spans, states if hidden else None, inner))

    def _logits(self, x: Tensor) -> Tensor:
        return F.linear(x, self.head[: self.vocab])

    def _attention(
        self, index: int, x: Tensor, cos: Tensor, sin: Tensor, spans: Sequence[Span]
    ) -> Tensor:
        """x: [tokens, width] of all spans; each span attends to its own keys."""
        config, layer = self.config, self.stack[index]
        q = layer.q(x).view(len(x), config.heads, config.size)
        k = layer.k(x).view(len(x), config.kv_heads, config.size)
        v = layer.v(x).view(len(x), config.kv_heads, config.size)
        if layer.q_norm is not None and layer.k_norm is not None:
            q = reference.rms_norm(q, layer.q_norm, config.eps)
            k = reference.rms_norm(k, layer.k_norm, config.eps)
        q, k = reference.rotate(q, cos, sin), reference.rotate(k, cos, sin)
        seen = []
        for span, at in batch.slices(spans):
            keys, values = store_of(span.lease).keep(index, span.start, k[at], v[at])
            seen.append(
                reference.attend(
                    q[at],
                    keys,
                    values,
                    span.start,
                    window=config.windows[index],
                    scale=config.size**-0.5,
                )
            )
        return layer.out(torch.cat(seen).flatten(1))

    def close(self) -> None:
        """Free the weights."""
        self.stack.clear()
        self.embedding = self.head = self.norm = torch.empty(0)
