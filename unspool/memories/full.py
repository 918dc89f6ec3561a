"""Full memory: dense, with room for the longest text from the first token on.

A store is made once and then written in place: while a text runs, nothing grows. A text that parts
from another shares what both begin with, and makes room for the rest of the context when it first
writes. What that costs in bytes only the model knows, which makes the stores.
"""
from __future__ import annotations

from unspool.memories.dense import IDLE_BYTES, Dense


class Full(Dense):
    """Finds prefixes as Dense does. `context`: most tokens that a text may have."""

    def __init__(self, context: int, idle_bytes: int = IDLE_BYTES) -> None:
        super().__init__(idle_bytes, reserve=context)
