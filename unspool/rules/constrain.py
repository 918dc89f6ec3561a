"""The rule that applies a constraint. It knows of it what `core/sockets.py: Constraint` says."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unspool.core.prefix import Candidate
from unspool.core.sockets import Constraint
from unspool.kernels.shaping import only
from unspool.kernels.shaping.recipe import Operation
from unspool.kernels.shaping.row import KEEP
from unspool.rules.rows import Rows
from unspool.rules.rule import RuleValue, rule


@dataclass(frozen=True, slots=True)
class Under:
    """A constraint, and the state that the text has brought it to."""

    constraint: Constraint
    state: Any

    @property
    def allowed(self) -> Any:
        return self.constraint.allowed(self.state)


def start(rule: RuleValue, prompt: Sequence[int]) -> Under:
    constraint: Constraint = rule.data  # type: ignore[assignment]
    return Under(constraint, constraint.start())


def after(rule: RuleValue, state: Under, token: int, fact: Candidate) -> Under:
    return Under(state.constraint, state.constraint.after(state.state, token))


def words(state: Under) -> tuple[int, int]:
    """Where the allowed ids lie, and how many there are."""
    return state.allowed.ctypes.data, len(state.allowed)


@rule(Operation(only.only_allowed, KEEP), start=start, after=after, words=words)
def constrain(rows: Rows) -> Any:
    """Keep the tokens that the constraint allows next; it reads what was written, not the prompt.

    The data is the constraint.
    """
    vocab = rows.values.shape[-1]
    allowed = np.zeros(rows.values.shape)
    for own, state in zip(allowed, rows.states, strict=True):
        own[state.allowed[state.allowed < vocab]] = 1
    return rows.drop(rows.like(allowed) == 0)
