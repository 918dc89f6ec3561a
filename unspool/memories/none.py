"""No memory: every step reads the whole text again. The slow truth that others are held to."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unspool.core.prefix import Prefix
from unspool.core.sockets import Reader


@dataclass(slots=True, eq=False)
class Blank:
    """A lease on nothing: the keys of this forward are all there are."""

    length: int = 0
    reserve: int = 0
    store: Any = None


class Nothing:
    """Knows no prefix."""

    exact = True
    keeps = False

    def known(self, reader: Reader, prefix: Prefix) -> Blank:
        return Blank()

    def settle(self, lease: Blank, prefix: Prefix | None) -> None:
        if lease.store is not None:
            lease.store.free()
            lease.store = None

    def clear(self) -> None:
        return None
