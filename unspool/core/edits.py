"""The five edits. A strategy answers with them, and nothing else ever changes a branch."""
from __future__ import annotations

from dataclasses import dataclass

from unspool.core.branch import Branch
from unspool.core.prefix import Candidate


@dataclass(slots=True)
class Extend:
    """Settle one token. A draft that begins with it moves up; any other draft is void."""

    branch: Branch
    candidate: Candidate


@dataclass(slots=True)
class Fork:
    """Make a branch from this one, with one more token or with another choice's noise."""

    branch: Branch
    candidate: Candidate | None = None
    choice: int | None = None


@dataclass(slots=True)
class Drop:
    """Give a branch up. The reason stays in the trace."""

    branch: Branch
    reason: str = ""


@dataclass(slots=True)
class Draft:
    """Replace the tentative tail. Without parents it is a chain."""

    branch: Branch
    tokens: tuple[int, ...]
    parents: tuple[int, ...] | None = None
    tail: str = "causal"


@dataclass(slots=True)
class Replace:
    """Put another prompt under a branch, and the written tokens that follow it."""

    branch: Branch
    prompt: tuple[int, ...]
    written: tuple[Candidate, ...]


Edit = Extend | Fork | Drop | Draft | Replace
EDITS = (Extend, Fork, Drop, Draft, Replace)
