"""Ending at a length: so many tokens, or so many seconds. Both are reason "length"."""
from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from unspool.core.branch import Branch, Ended


@dataclass(frozen=True, slots=True)
class MaxNew:
    """Ends when `count` tokens are written; `which` names the limit that asked for it."""

    count: int
    which: str = "max_new_tokens"

    def start(self) -> None:
        return None

    def after(self, state: object, branch: Branch) -> tuple[None, Ended | None]:
        return None, Ended("length", self.which) if branch.written >= self.count else None


@dataclass(frozen=True, slots=True)
class MaxTime:
    """Ends with the first token written `seconds` or more after `start`, which begins the clock."""

    seconds: float
    clock: Callable[[], float] = time.monotonic

    def start(self) -> float:
        return self.clock()

    def after(self, state: Any, branch: Branch) -> tuple[float, Ended | None]:
        late = self.clock() - state >= self.seconds
        return state, Ended("length", "max_time") if late else None
