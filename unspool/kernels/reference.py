"""The kernels, plain and right, in torch: every faster kernel is compared with these.

They see arrays and nothing else: no model, no batch, no memory. Sums, roots, angles and weights are
taken in float32 at least, whatever the model's type; results return in the type of the input.
"""
from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

QUERIES = 256  # queries scored at once: bounds the memory of a long prompt, changes no value


def _wide(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / rms(x) * weight over the last axis (arXiv:1910.07467); `weight` [size]."""
    wide = _wide(x)
    scaled = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return weight * scaled.to(x.dtype)


def angles(
    positions: Sequence[int], frequencies: Sequence[float], factor: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Cosines and sines of position x frequency, times `factor`: two float64 [tokens, pairs].

    Float64 because half precision cannot even tell position 20011 from 20012.
    """
    turned = torch.outer(
        torch.tensor(positions, dtype=torch.float64),
        torch.tensor(frequencies, dtype=torch.float64),
    )
    return turned.cos() * factor, turned.sin() * factor


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions (arXiv:2104.09864): turn each pair (i, i + size / 2) of x by its angle.

    x: [tokens, heads, size]; cos, sin: [tokens, size / 2].
    """
    first, second = _wide(x).chunk(2, dim=-1)
    cos, sin = cos.to(first.dtype).unsqueeze(1), sin.to(first.dtype).unsqueeze(1)
    turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
    return turned.to(x.dtype)


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up (arXiv:2002.05202)."""
    return F.silu(gate) * up


def attend(
    q: Tensor, k: Tensor, v: Tensor, start: int, *, window: int | None = None, scale: float
) -> Tensor:
    """Causal attention of one row, query heads sharing key heads in groups (arXiv:2305.13245).

    q: [n, heads, size]; k: [total, kv_heads, size]; v: [total, kv_heads, v_size].
    Returns [n, heads, v_size]. Query i stands at position start + i, key j at position j; the query
    sees the keys up to its own position, only the last `window` of them if one is given. A query
    that sees no key gives zeros.
    """
    parts = [
        _attend(part, k, v, start + i * QUERIES, window, scale)
        for i, part in enumerate(torch.split(q, QUERIES))
    ]
    return torch.cat(parts)


def _attend(
    q: Tensor, k: Tensor, v: Tensor, start: int, window: int | None, scale: float
) -> Tensor:
    n, heads, size = q.shape
    k, v = k[: start + n], v[: start + n]
    total, kv_heads = k.shape[:2]
    grouped = q.reshape(n, kv_heads, heads // kv_heads, size).permute(1, 2, 0, 3)
    scores = _wide(grouped @ k.permute(1, 2, 0).unsqueeze(1)) * scale
    query = torch.arange(start, start + n, device=q.device).unsqueeze(1)
    key = torch.arange(total, device=q.device)
    seen = key <= query
    if window is not None:
        seen &= key > query - window
    weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
    weights = weights.masked_fill(~seen, 0.0).to(v.dtype)  # softmax of nothing is NaN
    out = weights @ v.permute(1, 0, 2).unsqueeze(1)
    return out.permute(2, 0, 1, 3).reshape(n, heads, v.shape[-1])


def similarity(states: Tensor, rows: int) -> list[float]:
    """For each of the last `rows` of `states` [tokens, width] the largest cosine with a state
    before it (arXiv:2202.06417); -1.0 for the first token. A state of zeros has cosine 0.
    """
    # float64, which Apple's GPUs lack
    wide = states.to(torch.float32 if states.device.type == "mps" else torch.float64)
    size = wide.norm(dim=-1, keepdim=True)
    unit = wide / torch.where(size > 0, size, 1.0)
    first = len(unit) - rows
    return [float((unit[:i] @ unit[i]).max()) if i else -1.0 for i in range(first, len(unit))]
