"""What a decoder of the Llama family is made of, read from a config in transformers' spelling.

A key that could change a number and is not understood raises UnsupportedError: it is never
ignored. It knows neither tensors nor files.
"""
from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unspool.core.errors import FormatError
from unspool.models.rope import Rope, UnsupportedError, rope


@dataclass(frozen=True, slots=True)
class Config:
    """Sizes and switches. `windows`: per layer, the most keys that a query sees (None: all)."""

    family: str
    vocab: int
    width: int  # of the residual stream
    inner: int  # of the feed-forward
    layers: int
    heads: int
    kv_heads: int
    size: int  # of a head
    eps: float
    context: int
    tied: bool  # the head is the embedding
    rope: Rope
    windows: tuple[int | None, ...]
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False


# Keys that change no logit: bookkeeping, training, and choices made by the caller.
NEUTRAL = frozenset((
    "model_type", "architectures", "transformers_version", "torch_dtype", "dtype",
    "_name_or_path", "name_or_path", "use_cache", "initializer_range", "pretraining_tp",
    "attention_dropout", "hidden_dropout", "embd_pdrop", "resid_pdrop", "bos_token_id",
    "eos_token_id", "pad_token_id", "unk_token_id", "sep_token_id", "decoder_start_token_id",
    "id2label", "label2id", "num_labels", "problem_type", "finetuning_task",
    "task_specific_params", "output_attentions", "output_hidden_states", "return_dict",
    "torchscript", "tokenizer_class", "prefix", "transformers.js_config", "is_llama_config",
    "unsloth_version", "unsloth_fixed", "_commit_hash", "_attn_implementation",
    "_attn_implementation_autoset", "attn_implementation", "gradient_checkpointing", "max_length",
    "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups",
    "diversity_penalty", "temperature", "top_k", "top_p", "typical_p", "repetition_penalty",
    "length_penalty", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "bad_words_ids",
    "num_return_sequences", "output_scores", "return_dict_in_generate", "forced_bos_token_id",
    "forced_eos_token_id", "remove_invalid_values", "exponential_decay_length_penalty",
    "suppress_tokens", "begin_suppress_tokens",
))
# Keys that change nothing while they have this value.
HARMLESS: dict[str, Any] = {
    "is_encoder_decoder": False,
    "is_decoder": False,
    "add_cross_attention": False,
    "tie_encoder_decoder": False,
    "cross_attention_hidden_size": None,
    "chunk_size_feed_forward": 0,
    "pruned_heads": {},
    "use_bfloat16": False,
    "rope_interleaved": False,
    "partial_rotary_factor": 1.0,
    "use_mrope": False,
}
# What may be left out, with the value transformers gives it then.
DEFAULTS: dict[str, Any] = {
    "num_key_value_heads": None,
    "head_dim": None,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "rope_theta": None,
    "rope_scaling": None,
    "rope_parameters": None,
    "original_max_position_embeddings": None,
}
# Every size with the largest value believed: a damaged config must not fill the memory.
SIZES = {
    "vocab_size": 2**31,
    "hidden_size": 2**20,
    "intermediate_size": 2**24,
    "num_hidden_layers": 2**12,
    "num_attention_heads": 2**16,
    "num_key_value_heads": 2**16,
    "head_dim": 2**14,
    "max_position_embeddings": 2**40,
}


def understood(raw: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """`raw` completed from DEFAULTS and the family's own `defaults`.

    Raises UnsupportedError for a key outside both that is not known to be neutral, FormatError for
    a size that cannot be.
    """
    full = {**DEFAULTS, **defaults, **raw}
    for key, value in raw.items():
        known = key in DEFAULTS or key in defaults or key in SIZES or key in NEUTRAL
        if not known and value is not None and HARMLESS.get(key, ...) != value:
            raise UnsupportedError(f"config key {key} = {value!r}")
    if full["hidden_act"] not in ("silu", "swish"):
        raise UnsupportedError(f"hidden_act {full['hidden_act']!r}")
    for key in ("hidden_size", "num_attention_heads"):
        _check_size(key, full.get(key))
    full["num_key_value_heads"] = full["num_key_value_heads"] or full["num_attention_heads"]
    full["head_dim"] = full["head_dim"] or full["hidden_size"] // full["num_attention_heads"]
    for key in SIZES:
        _check_size(key, full.get(key))
    _check_rest(full)
    return full


def _check_rest(full: Mapping[str, Any]) -> None:
    if full["head_dim"] % 2:
        raise FormatError(
            f"head_dim = {full['head_dim']} in the model's config: rotary pairs need an even one"
        )
    eps = full["rms_norm_eps"]
    if isinstance(eps, bool) or not isinstance(eps, int | float) or not 0 <= eps < math.inf:
        raise FormatError(
            f"rms_norm_eps = {eps!r} in the model's config: it must be a number, 0 or more"
        )
    if full["num_attention_heads"] % full["num_key_value_heads"]:
        raise FormatError(
            f"num_attention_heads = {full['num_attention_heads']} is no multiple of "
            f"num_key_value_heads = {full['num_key_value_heads']}: correct the model's config"
        )


def _check_size(key: str, value: object) -> None:
    most = SIZES.get(key, 2**40)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise FormatError(
            f"{key} = {value!r} in the model's config: it must be a whole number from 1 to {most}"
        )


def decoder(full: Mapping[str, Any], windows: tuple[int | None, ...], **switches: bool) -> Config:
    """The Config of a completed config; `switches` are the family's biases and norms."""
    for window in windows:
        if window is not None:
            _check_size("sliding_window", window)
    return Config(
        family=full["model_type"],
        vocab=full["vocab_size"],
        width=full["hidden_size"],
        inner=full["intermediate_size"],
        layers=full["num_hidden_layers"],
        heads=full["num_attention_heads"],
        kv_heads=full["num_key_value_heads"],
        size=full["head_dim"],
        eps=float(full["rms_norm_eps"]),
        context=full["max_position_embeddings"],
        tied=bool(full["tie_word_embeddings"]),
        rope=rope(full, full["head_dim"]),
        windows=windows,
        **switches,
    )


def layer_windows(full: Mapping[str, Any]) -> tuple[int | None, ...]:
    """Qwen's windows: those of `layer_types`, else of the layers from `max_window_layers` on."""
    count = full["num_hidden_layers"]
    window = full["sliding_window"] if full["use_sliding_window"] else None
    kinds = full["layer_types"]
    if kinds is None:
        first = full["max_window_layers"]
        if not isinstance(first, int):
            raise FormatError(f"max_window_layers = {first!r}: it must be a whole number")
        return tuple(window if i >= first else None for i in range(count))
    if not isinstance(kinds, list) or len(kinds) != count:
        raise FormatError(
            f"layer_types = {str(kinds)[:80]} for {count} layers: the config needs one for each"
        )
    for kind in kinds:
        if kind not in ("full_attention", "sliding_attention"):
            raise UnsupportedError(f"layers of type {kind!r}")
        if kind == "sliding_attention" and window is None:
            raise UnsupportedError("sliding_attention layers without a window")
    return tuple(window if kind == "sliding_attention" else None for kind in kinds)
