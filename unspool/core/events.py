"""What a job tells the outside as it goes. Tokens are shown once, or taken back by name.

`Commit` is final: every live branch that can still win shares those tokens. `Provisional` tokens
follow the committed ones on the path that leads now; `Revoke` takes the last of them back.
"""
from __future__ import annotations

from dataclasses import dataclass

from unspool.core.prefix import Candidate


@dataclass(frozen=True, slots=True)
class Commit:
    choice: int
    tokens: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Provisional:
    choice: int
    tokens: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Revoke:
    choice: int
    count: int


@dataclass(frozen=True, slots=True)
class Paused:
    """A held job has read its slots and waits to be released."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of a job. `error` is what went wrong, None when nothing did."""

    error: Exception | None = None


Event = Commit | Provisional | Revoke | Paused | Finished
