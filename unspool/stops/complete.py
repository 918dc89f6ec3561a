"""Ending when a constraint lets nothing follow. Knows no texts."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unspool.core.branch import Branch, Ended
from unspool.core.sockets import Constraint


@dataclass(frozen=True, slots=True)
class Complete:
    """Ends with the token that leaves nothing to write, so that no end token is needed; `which`
    names the constraint. Where an end token came first, `EndTokens` should be asked before."""

    constraint: Constraint
    which: str

    def start(self) -> Any:
        return self.constraint.start()

    def after(self, state: Any, branch: Branch) -> tuple[Any, Ended | None]:
        state = self.constraint.after(state, branch.settled.token)
        return state, Ended("stop", self.which) if self.constraint.done(state) else None
