"""Mistral: Llama whose queries see only the last `sliding_window` keys (arXiv:2310.06825)."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unspool.models.config import Config, decoder, understood

DEFAULTS = {
    "num_key_value_heads": 8,
    "max_position_embeddings": 131_072,
    "sliding_window": 4096,
}


def configure(raw: Mapping[str, Any]) -> Config:
    """A Config from a Mistral config; raises UnsupportedError for what is not Mistral's own."""
    full = understood(raw, DEFAULTS)
    return decoder(full, windows=(full["sliding_window"],) * full["num_hidden_layers"])
