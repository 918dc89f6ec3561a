"""Rotary positions of transformers whose angles depend on how long the text is.

With dynamic NTK and LongRoPE every key changes when the text grows past a length, so nothing of it
may be remembered, and a row of scores belongs to the text up to it alone.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unspool.core.errors import ModelError

KINDS = ("dynamic", "longrope")


@dataclass(frozen=True, slots=True)
class LengthDependent:
    """`kind`: as the config names it; `original`: the longest text with unchanged angles.

    `growing`: modules that keep the angles of the longest text so far for shorter ones too.
    """

    kind: str
    original: int
    growing: tuple[Any, ...]

    def reset(self) -> None:
        """Make the growing modules forget, so that a text's angles depend on that text alone."""
        for module in self.growing:
            module.inv_freq = module.original_inv_freq.clone()
            module.max_seq_len_cached = module.original_max_seq_len


def length_dependent(model: Any) -> LengthDependent | None:
    """What is to know about a model's angles, None when they depend on the position alone.

    Raises ModelError when the angles grow in a way that cannot be undone.
    """
    text = model.config.get_text_config(decoder=True)
    found = [s for s in _settings(getattr(text, "rope_parameters", None)) if _kind(s) in KINDS]
    if not found:
        return None
    most = text.max_position_embeddings
    original = min(s.get("original_max_position_embeddings") or most for s in found)
    growing: tuple[Any, ...] = ()
    if any(_kind(s) == "dynamic" for s in found):
        growing = tuple(m for m in model.modules() if hasattr(m, "original_inv_freq"))
        if not growing:
            raise ModelError(
                f"{type(model).__name__}: its dynamic rotary positions depend on the texts before, "
                "and cannot be reset: use a model with another kind"
            )
    return LengthDependent(_kind(found[0]), original, growing)


def _settings(parameters: Any) -> list[Mapping[str, Any]]:
    """The rotary settings of a config: one, or one for each type of layer."""
    if not isinstance(parameters, Mapping):
        return []
    return [parameters, *(v for v in parameters.values() if isinstance(v, Mapping))]


def _kind(settings: Mapping[str, Any]) -> str:
    return str(settings.get("rope_type", settings.get("type", "default")))
