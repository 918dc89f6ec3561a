"""Qwen2 and Qwen2.5: Llama with biases on queries, keys and values (arXiv:2407.10671)."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unspool.models.config import Config, decoder, layer_windows, understood

DEFAULTS = {
    "num_key_value_heads": 32,
    "max_position_embeddings": 32_768,
    "use_sliding_window": False,
    "sliding_window": 4096,
    "max_window_layers": 28,
    "layer_types": None,
}


def configure(raw: Mapping[str, Any]) -> Config:
    """A Config from a Qwen2 config; raises UnsupportedError for what is not Qwen2's own."""
    full = understood(raw, DEFAULTS)
    return decoder(full, layer_windows(full), qkv_bias=True)
