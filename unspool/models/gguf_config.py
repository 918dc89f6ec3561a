"""The config that a GGUF file's metadata describes, in transformers' spelling.

Reads the keys of llama, qwen2 and qwen3 files. A key it does not understand is refused by name,
since it may change numbers. It does not read tensors' values.
"""
from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from unspool.core.errors import FormatError, ModelError

SIZES = {
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
}
ROPE = {
    "rope.scaling.factor": "factor",
    "rope.scaling.original_context_length": "original_max_position_embeddings",
    "rope.scaling.yarn_beta_fast": "beta_fast",
    "rope.scaling.yarn_beta_slow": "beta_slow",
}
# Keys read here one by one, or without meaning for the numbers.
OTHER = {
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.layer_norm_rms_epsilon",
    "attention.sliding_window",
    "rope.freq_base",
    "rope.dimension_count",
    "rope.scaling.type",
    "rope.scaling.finetuned",
    "vocab_size",
}
FAMILIES = ("llama", "qwen2", "qwen3")


def config_of(metadata: Mapping[str, Any], tensors: Collection[str], vocab: int) -> dict[str, Any]:
    """A config for `configure` of the family it names under `model_type`.

    `tensors`: the names of the file's tensors, which tell of biases and a tied head; `vocab`: the
    rows of its embedding. Raises ModelError for an architecture or key that is not understood,
    FormatError for a missing one.
    """
    arch = metadata.get("general.architecture")
    if arch not in FAMILIES:
        raise ModelError(
            f"GGUF architecture {arch!r} is not read: this version reads {', '.join(FAMILIES)}; "
            "give the model's safetensors folder instead"
        )
    keys = {k.removeprefix(f"{arch}."): v for k, v in metadata.items() if k.startswith(f"{arch}.")}
    _refuse_unknown(arch, keys)
    raw: dict[str, Any] = {"model_type": arch, "vocab_size": vocab, "rope_parameters": _rope(keys)}
    for key, name in SIZES.items():
        if key not in keys:
            raise FormatError(f"GGUF key {arch}.{key} is missing: the file is incomplete")
        raw[name] = _uniform(f"{arch}.{key}", keys[key])
    raw["num_key_value_heads"] = _uniform(
        f"{arch}.attention.head_count_kv",
        keys.get("attention.head_count_kv", raw["num_attention_heads"]),
    )
    raw["head_dim"] = _head_size(keys, raw)
    raw["rms_norm_eps"] = keys.get("attention.layer_norm_rms_epsilon", 1e-6)
    raw["tie_word_embeddings"] = "output.weight" not in tensors
    return raw | _features(arch, keys, tensors)


def _refuse_unknown(arch: str, keys: Mapping[str, Any]) -> None:
    known = OTHER | SIZES.keys() | ROPE.keys()
    for key, value in keys.items():
        neutral = not value or (key == "tensor_data_layout" and value == "Meta AI original pth")
        if key not in known and not neutral:
            raise ModelError(
                f"GGUF key {arch}.{key} = {str(value)[:60]} is not understood and may change "
                "numbers: give the model's safetensors folder instead"
            )


def _uniform(key: str, value: Any) -> Any:
    """A size, which some files give once per layer."""
    if not isinstance(value, list):
        return value
    if not value or any(one != value[0] for one in value):
        raise ModelError(f"GGUF key {key} differs by layer: such models are not read")
    return value[0]


def _head_size(keys: Mapping[str, Any], raw: Mapping[str, Any]) -> Any:
    """The stated head size; None leaves it to the config's own rule."""
    width, heads = raw["hidden_size"], raw["num_attention_heads"]
    size = keys.get("attention.key_length")
    if size is None and isinstance(width, int) and isinstance(heads, int) and heads > 0:
        size = width // heads
    for key in ("attention.value_length", "rope.dimension_count"):
        if keys.get(key, size) != size:
            raise ModelError(
                f"GGUF key {key} = {keys[key]} is not the head size {size}: such models are not "
                "read; give the model's safetensors folder instead"
            )
    return size


def _rope(keys: Mapping[str, Any]) -> dict[str, Any]:
    kind = keys.get("rope.scaling.type", "none")
    theta = {"rope_theta": keys.get("rope.freq_base", 10_000.0)}
    if kind == "none":
        return theta
    if kind not in ("linear", "yarn"):
        raise ModelError(f"GGUF key rope.scaling.type = {kind!r} is not read: linear or yarn are")
    settings = {name: keys[key] for key, name in ROPE.items() if key in keys}
    if kind == "linear":
        settings = {"factor": settings.get("factor")}
    return theta | {"rope_type": kind} | settings


def _features(arch: str, keys: Mapping[str, Any], tensors: Collection[str]) -> dict[str, Any]:
    """What the files of each architecture may or may not have besides."""
    window = keys.get("attention.sliding_window")
    if arch == "llama":
        if window:  # Mistral goes by the name of llama, its window tells
            return {"model_type": "mistral", "sliding_window": window}
        return {
            "attention_bias": "blk.0.attn_output.bias" in tensors,
            "mlp_bias": "blk.0.ffn_up.bias" in tensors,
        }
    layers = {"use_sliding_window": True, "sliding_window": window, "max_window_layers": 0}
    bias = {"attention_bias": "blk.0.attn_output.bias" in tensors} if arch == "qwen3" else {}
    return (layers if window else {}) | bias
