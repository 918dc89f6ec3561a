"""Llama and what shares its shape, SmolLM2 among them (arXiv:2302.13971)."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unspool.models.config import Config, decoder, understood

DEFAULTS = {"attention_bias": False, "mlp_bias": False, "max_position_embeddings": 2048}


def configure(raw: Mapping[str, Any]) -> Config:
    """A Config from a Llama config; raises UnsupportedError for what is not Llama's own."""
    full = understood(raw, DEFAULTS)
    bias = bool(full["attention_bias"])
    return decoder(
        full,
        windows=(None,) * full["num_hidden_layers"],
        qkv_bias=bias,
        out_bias=bias,
        mlp_bias=bool(full["mlp_bias"]),
    )
