"""The five edits. A strategy answers with them, and nothing else ever changes a branch."""
from __future__ import annotations

from dataclasses import dataclass
from operator import index
from typing import Any

from unspool.core.branch import Branch
from unspool.core.errors import ParameterError
from unspool.core.prefix import Candidate


@dataclass(slots=True)
class Extend:
    """Settle one token. A draft that begins with it moves up; any other draft is void.

    `kept`: what the strategy keeps with the branch from now on; None: what it kept before.
    """

    branch: Branch
    candidate: Candidate
    kept: object = None


@dataclass(slots=True)
class Fork:
    """Make a branch from this one, with one more token or with another choice's noise.

    `kept`: as in `Extend`. `stage`: the part of the request that the new branch begins. `draft`: a
    chain of tokens that it does not write yet.
    """

    branch: Branch
    candidate: Candidate | None = None
    choice: int | None = None
    kept: object = None
    stage: int | None = None
    draft: tuple[int, ...] = ()


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


def natural(token: Any) -> int:
    """The number, if it can be an id or a choice: others would be read as what they are not."""
    number = index(token)
    if number < 0:
        raise ParameterError(f"token {token}: ids run from 0 on", "strategy")
    return number
