"""Ending when the text repeats itself, as vLLM's `repetition_detection` does. Knows ids only."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unspool.core.branch import Branch, Ended


@dataclass(frozen=True, slots=True)
class Repetition:
    """Ends when the written tokens end in `min_count` copies, in a row, of one pattern.

    Patterns of `min_pattern_size` to `max_pattern_size` tokens are looked for. The state holds for
    each size how many last tokens equal the token that many places before, so a step costs
    O(max_pattern_size), whatever the text's length.
    """

    max_pattern_size: int
    min_pattern_size: int = 1
    min_count: int = 2

    @property
    def sizes(self) -> range:
        return range(self.min_pattern_size, self.max_pattern_size + 1)

    def start(self) -> tuple[int, ...]:
        return (0,) * len(self.sizes)

    def after(self, state: Any, branch: Branch) -> tuple[tuple[int, ...], Ended | None]:
        last = branch.settled.last(min(self.max_pattern_size + 1, branch.written))
        runs = tuple(
            run + 1 if size < len(last) and last[-1 - size] == last[-1] else 0
            for run, size in zip(state, self.sizes, strict=True)
        )
        pairs = zip(runs, self.sizes, strict=True)
        found = any(run >= size * (self.min_count - 1) for run, size in pairs)
        return runs, Ended("stop", "repetition") if found else None
