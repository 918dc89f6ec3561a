"""Loaded models: text in, text out, on one engine."""
from unspool.llm.handle import Handle
from unspool.llm.llm import LLM
from unspool.llm.results import Output, Token

__all__ = ["LLM", "Handle", "Output", "Token"]
