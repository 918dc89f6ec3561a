"""`@rule` makes a function a stackable value: `min_p(0.1)` can be compared, hashed and printed.

A rule reads and changes a `Head`; one that needs every logit says `reads="row"`, and gets the rows
and what it remembers of each branch. What it remembers is a fold over the tokens, so it is right
under forks, drafts and resume. Rows with the same recipe (same names in the same order) are
shaped together, and the numbers become columns.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, Literal

import numpy as np

from unspool.core.prefix import Candidate
from unspool.kernels.reading.plain import Floats


@dataclass(frozen=True, slots=True)
class Kind:
    """What is common to all values of one rule."""

    apply: Callable[..., Any]
    reads: Literal["head", "row"]
    start: Callable[[Sequence[int]], object]
    after: Callable[[Any, int, Candidate], object]


KINDS: dict[str, Kind] = {}


@dataclass(frozen=True, slots=True)
class RuleValue:
    """One rule with its numbers."""

    name: str
    numbers: tuple[float, ...]

    def start(self, prompt: Sequence[int]) -> object:
        return KINDS[self.name].start(prompt)

    def after(self, state: object, token: int, fact: Candidate) -> object:
        return KINDS[self.name].after(state, token, fact)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{n:g}' for n in self.numbers)})"


def forget(prompt: Sequence[int]) -> object:
    return None


def keep(state: object, token: int, fact: Candidate) -> object:
    return state


def rule(reads: Literal["head", "row"] = "head",
         start: Callable[[Sequence[int]], object] = forget,
         after: Callable[[Any, int, Candidate], object] = keep,
         ) -> Callable[[Callable[..., Any]], Callable[..., RuleValue]]:
    """Register the function under its name, and give back the maker of its values."""

    def register(function: Callable[..., Any]) -> Callable[..., RuleValue]:
        name = function.__name__
        if name in KINDS and KINDS[name].apply.__module__ != function.__module__:
            raise ValueError(f"there is a rule {name!r} already, in "
                             f"{KINDS[name].apply.__module__}: give this one another name")
        wanted = len(signature(function).parameters) - (1 if reads == "head" else 2)
        KINDS[name] = Kind(function, reads, start, after)

        def make(*numbers: float) -> RuleValue:
            if len(numbers) != wanted:
                raise TypeError(f"{name} takes {wanted} numbers, not {len(numbers)}")
            return RuleValue(name, tuple(float(n) for n in numbers))

        make.__doc__, make.__name__ = function.__doc__, name
        return make

    return register


def columns(rules: Sequence[RuleValue]) -> list[Floats]:
    """The numbers of the same rule on R rows, each as a column [R, 1]."""
    table = np.asarray([r.numbers for r in rules], dtype=np.float64).reshape(len(rules), -1)
    return [table[:, i:i + 1] for i in range(table.shape[1])]
