"""Qwen3: Llama with a norm on each head's query and key (arXiv:2505.09388)."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unspool.models import qwen2
from unspool.models.config import Config, decoder, layer_windows, understood

DEFAULTS = {**qwen2.DEFAULTS, "head_dim": 128, "attention_bias": False}


def configure(raw: Mapping[str, Any]) -> Config:
    """A Config from a Qwen3 config; raises UnsupportedError for what is not Qwen3's own."""
    full = understood(raw, DEFAULTS)
    bias = bool(full["attention_bias"])
    return decoder(full, layer_windows(full), qkv_bias=bias, out_bias=bias, qk_norm=True)
