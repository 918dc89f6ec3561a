"""A recipe: the rules of one request, ready for the kernel."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from unspool.kernels.shaping.recipe import states_of, table_of
from unspool.rules.rule import RuleValue

Words = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """Rules that all have operations. `address`: of the table; `kept`: what that points to."""

    rules: tuple[RuleValue, ...]
    table: Words
    address: int
    kept: tuple[object, ...]
    stateful: bool

    def states(self, states: Sequence[object]) -> Words | None:
        """What the rules remember of one branch, as words."""
        if not self.stateful:
            return None
        kinds = [rule.kind for rule in self.rules]
        return states_of([() if kind.words is None else kind.words(state)
                          for kind, state in zip(kinds, states, strict=True)])


@lru_cache(maxsize=1024)
def recipe_of(rules: tuple[RuleValue, ...]) -> Recipe:
    packed = [rule.kind.pack(rule) for rule in rules]
    steps = [(rule.kind.operation, numbers)
             for rule, (numbers, _) in zip(rules, packed, strict=True)]
    table = table_of(steps)  # type: ignore[arg-type]
    return Recipe(rules, table, table.ctypes.data, tuple(kept for _, kept in packed),
                  any(rule.kind.words is not None for rule in rules))
