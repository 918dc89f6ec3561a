"""Rotary positions of transformers whose angles depend on how long the text is.

With dynamic NTK and LongRoPE every key changes when the text grows past a length, so nothing of it
may be remembered, and a row of scores belongs to the text up to it alone.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

KINDS = ("dynamic", "longrope")


@dataclass(frozen=True, slots=True)
class LengthDependent:
    """`kind`: as the config names it; `original`: the longest text with unchanged angles."""

    kind: str
    original: int
    modules: tuple[Any, ...]

    def reset(self) -> None:
        """Forget the longest text so far: transformers keeps its angles for shorter ones."""
        for module in self.modules:
            module.inv_freq = module.original_inv_freq
            module.max_seq_len_cached = module.original_max_seq_len


def length_dependent(model: Any) -> LengthDependent | None:
    """What is to know about a model's angles, None when they depend on the position alone."""
    text = model.config.get_text_config(decoder=True)
    found = [s for s in _settings(getattr(text, "rope_parameters", None)) if _kind(s) in KINDS]
    if not found:
        return None
    most = text.max_position_embeddings
    original = min(s.get("original_max_position_embeddings") or most for s in found)
    modules = tuple(m for m in model.modules() if hasattr(m, "max_seq_len_cached"))
    return LengthDependent(_kind(found[0]), original, modules)


def _settings(parameters: Any) -> list[Mapping[str, Any]]:
    """The rotary settings of a config: one, or one for each type of layer."""
    if not isinstance(parameters, Mapping):
        return []
    return [parameters, *(v for v in parameters.values() if isinstance(v, Mapping))]


def _kind(settings: Mapping[str, Any]) -> str:
    return str(settings.get("rope_type", settings.get("type", "default")))
