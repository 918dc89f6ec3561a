"""Finds out, by trying, how a transformers model may be run.

Compares forwards on a few made-up tokens: is a row untouched by what follows, and does running
texts packed and continued give what a plain forward gives?
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from unspool.core.errors import ModelError
from unspool.core.sockets import Span
from unspool.models.hf_attention import Packed
from unspool.models.hf_rope import LengthDependent
from unspool.models.rope import UnsupportedError

LONG, SHORT = 12, 5  # tokens of the two texts compared
NARROW = 64  # windows up to here are crossed by the long one
LAYERS = {"full_attention", "sliding_attention"}


class Runs(Protocol):
    """A transformers model that can be run in both ways."""

    model: Any
    context: int
    vocab: int
    rope: LengthDependent | None

    def packed(self, packed: Packed) -> Tensor: ...
    def plain(self, tokens: Sequence[int], rows: int = 1) -> Tensor: ...


@dataclass(slots=True, eq=False)
class Own:
    """A lease that is no memory's."""

    length: int = 0
    reserve: int = 0
    store: Any = None


def require_causal(run: Runs) -> None:
    """Raises ModelError when later tokens change the scores of earlier ones, or they are NaN."""
    text = _text(run, LONG)
    half = len(text) // 2 or 1
    if not _alike(run.plain(text, len(text))[:half], run.plain(text[:half], half)):
        raise ModelError(
            f"{type(run.model).__name__}: its scores for a text change when tokens follow, or are "
            "not numbers: it is no causal language model, or its weights are damaged"
        )


def reason_to_run_alone(run: Runs) -> str | None:
    """Why texts cannot be packed, in words; None when they can, with the same scores."""
    text = run.model.config.get_text_config(decoder=True)
    if run.rope is not None:
        return f"{run.rope.kind} rotary positions change with the length of the text"
    if getattr(run.model, "_is_stateful", False):
        return "it keeps a state that is not keys and values"
    other = set(getattr(text, "layer_types", None) or ()) - LAYERS
    if other or getattr(text, "attention_chunk_size", None):
        return f"it has layers of type {min(other, default='chunked attention')!r}"
    if not getattr(run.model, "_supports_attention_backend", False):
        return "its attention cannot be replaced"
    try:
        return _compare(run, _windows(text))
    except UnsupportedError as error:
        return f"its attention asks for {error}"
    except Exception as error:  # a model may fail in any way on a call it was not made for
        return f"packed texts fail in it ({type(error).__name__}: {str(error)[:80]})"


def _windows(text: Any) -> list[int | None]:
    """The window of each layer, by the config."""
    window = getattr(text, "sliding_window", None)
    if getattr(text, "use_sliding_window", True) is False:
        window = None
    kinds = getattr(text, "layer_types", None) or ["sliding_attention"] * text.num_hidden_layers
    return [window if kind == "sliding_attention" else None for kind in kinds]


@torch.no_grad()
def _compare(run: Runs, windows: list[int | None]) -> str | None:
    narrow = [w for w in windows if w is not None and w <= NARROW]
    long = _text(run, max([LONG, *(w + 4 for w in narrow)]))
    short = _text(run, SHORT)[::-1]
    want = torch.cat((run.plain(long, len(long)), run.plain(short, len(short))))

    fresh = Packed([_span(Own(), long), _span(Own(), short)])
    if not _alike(run.packed(fresh), want):
        return "packed texts get other scores than each alone"
    if [fresh.windows.get(i) for i in range(len(windows))] != windows:
        return "its layers do not say their windows"

    kept, half = Own(), len(long) // 2
    first = run.packed(Packed([_span(kept, long[:half])]))
    kept.length = half
    rest = run.packed(Packed([_span(kept, long[half:]), _span(Own(), short)]))
    if not _alike(torch.cat((first, rest)), want):
        return "continued texts get other scores than whole ones"
    return None


def _span(lease: Own, tokens: list[int]) -> Span:
    return Span(lease, tokens, lease.length, len(tokens))


def _text(run: Runs, length: int) -> list[int]:
    """Made-up tokens, all over the vocabulary."""
    return [(3 + 7919 * i) % run.vocab for i in range(min(length, run.context))]


def _alike(got: Tensor, want: Tensor) -> bool:
    """Equal but for rounding in the model's number type. NaN equals nothing."""
    finite = want[want.isfinite()].abs()
    size = float(finite.max()) if finite.numel() else 1.0
    loose = 1e-4 if want.dtype in (torch.float32, torch.float64) else 5e-2
    return torch.allclose(got, want, rtol=0, atol=loose * size)
