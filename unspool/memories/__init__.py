"""Memories: what a model remembers of prefixes, found by name.

An entry makes the memory of one model from the model's context, the most tokens of a text.
"""
from collections.abc import Callable

from unspool.core.sockets import Memory
from unspool.memories.dense import Dense
from unspool.memories.full import Full
from unspool.memories.none import Nothing

MEMORIES: dict[str, Callable[[int], Memory]] = {
    "dense": lambda context: Dense(),
    "full": Full,
    "none": lambda context: Nothing(),
}

__all__ = ["MEMORIES", "Dense", "Full", "Nothing"]
