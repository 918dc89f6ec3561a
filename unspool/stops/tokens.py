"""Ending at a token: the model's end tokens and the user's stop tokens. Knows ids only."""
from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from unspool.core.branch import Branch, Ended


@dataclass(frozen=True, slots=True)
class StopTokens:
    """Ends at any of `ids`; `which` is the id.

    `piece`: the bytes that a token adds to the text; given, they are cut off the answer.
    """

    ids: Collection[int]
    piece: Callable[[int], bytes] | None = None

    def start(self) -> None:
        return None

    def after(self, state: object, branch: Branch) -> tuple[None, Ended | None]:
        token = branch.settled.token
        if token not in self.ids:
            return None, None
        return None, Ended("stop", token, len(self.piece(token)) if self.piece else 0)


@dataclass(frozen=True, slots=True)
class EndTokens:
    """Ends at any of the model's end tokens, or at none if `ignored`; else as `StopTokens`."""

    ids: Collection[int]
    ignored: bool = False
    piece: Callable[[int], bytes] | None = None

    def start(self) -> None:
        return None

    def after(self, state: object, branch: Branch) -> tuple[None, Ended | None]:
        if self.ignored or branch.settled.token not in self.ids:
            return None, None
        return StopTokens(self.ids, self.piece).after(state, branch)
