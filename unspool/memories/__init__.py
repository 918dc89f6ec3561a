"""Memories: what a model remembers of prefixes, found by name."""
from collections.abc import Callable

from unspool.core.sockets import Memory
from unspool.memories.dense import Dense
from unspool.memories.none import Nothing

MEMORIES: dict[str, Callable[[], Memory]] = {"dense": Dense, "none": Nothing}

__all__ = ["MEMORIES", "Dense", "Nothing"]
