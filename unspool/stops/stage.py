"""The end of a stage of a program: where the next one takes over. Knows no strategy.

What ends the last stage ends the text.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from unspool.core.branch import Branch, Ended
from unspool.core.sockets import Stop
from unspool.core.stage import REACHED

WINDOW = 4096  # characters in which a pattern is looked for: the last ones


@dataclass(frozen=True, slots=True)
class EndOfStage:
    """`stop`, as far as it looks at what stage number `stage` writes. `last`: no stage follows."""

    stage: int
    stop: Stop
    last: bool = False

    def start(self) -> object:
        return self.stop.start()

    def after(self, state: object, branch: Branch) -> tuple[object, Ended | None]:
        if branch.stage != self.stage:
            return state, None
        state, ended = self.stop.after(state, branch)
        if ended is None or self.last:
            return state, ended
        return state, replace(ended, reason=REACHED, cut=0)


@dataclass(frozen=True, slots=True)
class Tokens:
    """So many tokens were written in the stage."""

    count: int

    def start(self) -> None:
        return None

    def after(self, state: object, branch: Branch) -> tuple[None, Ended | None]:
        done = branch.written - branch.since >= self.count
        return None, Ended("length", "tokens") if done else None


@dataclass(frozen=True, slots=True)
class Found:
    """A pattern is found in what the stage wrote; `piece`: the bytes that a token adds to it."""

    regex: str
    piece: Callable[[int], bytes]

    def start(self) -> str:
        return ""

    def after(self, state: Any, branch: Branch) -> tuple[str, Ended | None]:
        text = (state + self.piece(branch.settled.token).decode("latin-1"))[-WINDOW:]
        said = text.encode("latin-1").decode("utf-8", "replace")
        found = re.search(self.regex, said)
        return text, Ended("stop", self.regex) if found else None
