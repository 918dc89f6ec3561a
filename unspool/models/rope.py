"""Rotary frequencies from a config: default, linear, llama3 and yarn.

Plain numbers in float64; it knows neither tensors nor where the config came from.
"""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unspool.core.errors import FormatError

LOW, HIGH = 1e-9, 1e15  # a setting beyond is damage, and would overflow


class UnsupportedError(Exception):
    """The native families lack this feature of a config, so another way must run the model."""


@dataclass(frozen=True, slots=True)
class Rope:
    """Pair i of a head turns `frequencies[i]` radians a position; cos, sin are times `factor`."""

    frequencies: tuple[float, ...]
    factor: float = 1.0

    def divided(self, by: Sequence[float]) -> Rope:
        """The same with each frequency divided by its own number (GGUF's `rope_freqs`)."""
        if len(by) != len(self.frequencies):
            raise FormatError(
                f"{len(by)} rotary factors for {len(self.frequencies)} pairs: give one for each"
            )
        if not all(LOW <= d <= HIGH for d in by):
            raise FormatError(f"rotary factors: each must be a number from {LOW} to {HIGH}")
        both = zip(self.frequencies, by, strict=True)
        return Rope(tuple(f / float(d) for f, d in both), self.factor)


COMMON = {"rope_type", "type", "rope_theta"}
KEYS = {
    "default": COMMON,
    "linear": COMMON | {"factor"},
    "llama3": COMMON
    | {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"},
    "yarn": COMMON
    | {"factor", "attention_factor", "mscale", "mscale_all_dim", "beta_fast", "beta_slow"}
    | {"truncate", "original_max_position_embeddings"},
}


def rope(raw: Mapping[str, Any], size: int) -> Rope:
    """The rotary settings of a config in transformers' spelling, for heads of `size` numbers.

    Reads `rope_parameters`, or the older `rope_scaling`, and `rope_theta`. Raises UnsupportedError
    for a kind or a key that is not known here, FormatError for one that is missing or no number.
    """
    given = raw.get("rope_scaling") or raw.get("rope_parameters") or {}
    if not isinstance(given, Mapping):
        raise FormatError(f"rotary settings {str(given)[:60]!r}: the config needs a table there")
    settings = {key: value for key, value in given.items() if value is not None}
    kind = settings.get("rope_type", settings.get("type", "default"))
    if not isinstance(kind, str) or kind not in KEYS:
        raise UnsupportedError(f"rotary positions of kind {kind!r}")
    if settings.pop("partial_rotary_factor", 1.0) != 1.0:
        raise UnsupportedError("partial_rotary_factor")
    if unknown := sorted(set(settings) - KEYS[kind]):
        raise UnsupportedError(f"{unknown[0]!r} in the rotary settings of kind {kind!r}")
    theta = _number(settings, "rope_theta", raw.get("rope_theta") or 10_000.0)
    if theta <= 1:
        raise FormatError(f"rotary setting rope_theta = {theta}: it must be above 1")
    plain = [theta ** (-2 * i / size) for i in range(size // 2)]
    if kind == "default":
        return Rope(tuple(plain))
    if kind == "linear":
        return Rope(tuple(f / _number(settings, "factor") for f in plain))
    original = raw.get("original_max_position_embeddings") or settings.get(
        "original_max_position_embeddings", raw.get("max_position_embeddings")
    )
    settings["original"] = original
    return _llama3(settings, plain) if kind == "llama3" else _yarn(settings, plain, raw, theta)


def _number(settings: Mapping[str, Any], key: str, default: float | None = None) -> float:
    value = settings.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not LOW <= value <= HIGH:
        raise FormatError(
            f"rotary setting {key} = {value!r}: it must be a number from {LOW} to {HIGH}"
        )
    return float(value)


def _llama3(settings: Mapping[str, Any], plain: Sequence[float]) -> Rope:
    """Llama 3.1: slow pairs divided by the factor, fast ones kept, a blend between."""
    factor, original = _number(settings, "factor"), _number(settings, "original")
    low, high = _number(settings, "low_freq_factor"), _number(settings, "high_freq_factor")

    def scaled(f: float) -> float:
        turns = original * f / (2 * math.pi)  # over the context of the pretraining
        share = min(max((turns - low) / (high - low), 0.0), 1.0) if high != low else turns > low
        return f * (share + (1 - share) / factor)

    return Rope(tuple(scaled(f) for f in plain))


def _yarn(
    settings: Mapping[str, Any], plain: Sequence[float], raw: Mapping[str, Any], theta: float
) -> Rope:
    """YaRN (arXiv:2309.00071): fast pairs are kept, slow ones divided, with a ramp between."""
    original = _number(settings, "original")
    factor = _number(settings, "factor", _number(raw, "max_position_embeddings") / original)
    size = 2 * len(plain)

    def pair_that_turns(times: float) -> float:
        return size * math.log(original / (times * 2 * math.pi)) / (2 * math.log(theta))

    first = pair_that_turns(_number(settings, "beta_fast", 32))
    last = pair_that_turns(_number(settings, "beta_slow", 1))
    if settings.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, size - 1)
    width = (last - first) or 0.001
    ramp = [min(max((i - first) / width, 0.0), 1.0) for i in range(len(plain))]
    blended = (f * (1 - r) + f / factor * r for f, r in zip(plain, ramp, strict=True))
    return Rope(tuple(blended), _yarn_factor(settings, factor))


def _yarn_factor(settings: Mapping[str, Any], factor: float) -> float:
    """How much cos and sin grow, so that attention stays as sharp as on short texts."""

    def growth(scale: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * scale * math.log(factor) + 1.0

    if "attention_factor" in settings:
        return _number(settings, "attention_factor")
    if settings.get("mscale") and settings.get("mscale_all_dim"):
        return growth(_number(settings, "mscale")) / growth(_number(settings, "mscale_all_dim"))
    return growth(1.0)
