"""unspool: autoregressive decoding, every strategy on one engine, every step visible.

Importing this loads nothing heavy; each name brings its module when it is first used.
"""
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unspool.core.errors import (
        FormatError,
        ModelError,
        ParameterError,
        PromptError,
        RowError,
        TemplateError,
        UnspoolError,
    )
    from unspool.core.params import Params
    from unspool.core.schedule import Schedule, jumps, ramp
    from unspool.llm.llm import LLM
    from unspool.llm.load import load
    from unspool.llm.plan import (
        beam,
        beam_sample,
        best_of,
        contrastive,
        cot,
        diverse_beam,
        gated,
        greedy,
        lexical_beam,
        mbr,
        own,
        sample,
        self_consistency,
        sibling_beam,
        stochastic_beam,
        tree,
    )
    from unspool.llm.prompts import Request

PLANS = ("beam", "beam_sample", "best_of", "contrastive", "cot", "diverse_beam", "gated", "greedy",
         "lexical_beam", "mbr", "own", "sample", "self_consistency", "sibling_beam",
         "stochastic_beam", "tree")
HOMES = {
    "LLM": "llm.llm", "Params": "core.params", "Request": "llm.prompts", "load": "llm.load",
    "Schedule": "core.schedule", "jumps": "core.schedule", "ramp": "core.schedule",
    **dict.fromkeys(PLANS, "llm.plan"),
    **dict.fromkeys(("FormatError", "ModelError", "ParameterError", "PromptError", "RowError",
                     "TemplateError", "UnspoolError"), "core.errors"),
}

__all__ = ["LLM", "FormatError", "ModelError", "ParameterError", "Params", "PromptError", "Request",
           "RowError", "Schedule", "TemplateError", "UnspoolError", "beam", "beam_sample",
           "best_of", "contrastive", "cot", "diverse_beam", "gated", "greedy", "jumps",
           "lexical_beam", "load", "mbr", "own", "ramp", "sample", "self_consistency",
           "sibling_beam", "stochastic_beam", "tree"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'unspool' has no attribute {name!r}")
    return getattr(import_module(f"unspool.{HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
