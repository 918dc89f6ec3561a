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
    from unspool.llm.llm import LLM
    from unspool.llm.load import load
    from unspool.llm.plan import beam, greedy, sample
    from unspool.llm.prompts import Request

HOMES = {
    "LLM": "llm.llm", "Params": "core.params", "Request": "llm.prompts", "beam": "llm.plan",
    "greedy": "llm.plan", "load": "llm.load", "sample": "llm.plan",
    **dict.fromkeys(("FormatError", "ModelError", "ParameterError", "PromptError", "RowError",
                     "TemplateError", "UnspoolError"), "core.errors"),
}

__all__ = ["LLM", "FormatError", "ModelError", "ParameterError", "Params", "PromptError", "Request",
           "RowError", "TemplateError", "UnspoolError", "beam", "greedy", "load", "sample"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'unspool' has no attribute {name!r}")
    return getattr(import_module(f"unspool.{HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
