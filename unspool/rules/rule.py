"""`@rule` makes a function a stackable value: `min_p(0.1)` can be compared, hashed and printed.

The function is the rule's definition: `Rows` and columns of numbers in, values out. Beside it may
stand an operation, the same in compiled code. What a rule remembers of a branch is a fold over the
tokens, so it is right under forks, drafts and resume; the text so far is at hand for all.
"""
from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from inspect import Parameter, signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.core.history import History
from unspool.core.prefix import Candidate
from unspool.core.schedule import Schedule
from unspool.kernels.reading.noise import Place
from unspool.kernels.shaping.recipe import Number, Operation

Packed = tuple[Sequence[Number], object]


@dataclass(frozen=True, slots=True)
class Kind:
    """What is common to all values of one rule.

    `pack`: the numbers of its operation, and what must be kept alive as long as they are used (they
    may be addresses); `words`: what a state is for the operation; `place`: see `moves_noise`.
    """

    define: Callable[..., Any]
    defaults: tuple[float | None, ...]
    operation: Operation | None
    recalls: bool
    start: Callable[[RuleValue, Sequence[int]], Any]
    after: Callable[[RuleValue, Any, int, Candidate], Any]
    pack: Callable[[RuleValue], Packed]
    words: Callable[[Any], Sequence[Number]] | None
    entry: bool
    place: Callable[[RuleValue, History, Place], Place] | None = None


KINDS: dict[str, Kind] = {}


@dataclass(frozen=True, slots=True)
class RuleValue:
    """One rule with its numbers, and what of it is no number. In a request a number may be a
    schedule; each row is shaped by the rule as it is at that step."""

    name: str
    numbers: tuple[Any, ...] = ()
    data: Hashable = ()
    digest: int = field(init=False, repr=False, compare=False)  # data may be long

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", hash((self.name, self.numbers, self.data)))

    def __hash__(self) -> int:
        return self.digest

    @property
    def kind(self) -> Kind:
        return KINDS[self.name]

    @property
    def recalls(self) -> bool:
        """Whether it looks at the text so far."""
        return self.kind.recalls

    def start(self, prompt: Sequence[int]) -> object:
        return self.kind.start(self, prompt)

    def after(self, state: object, token: int, fact: Candidate) -> object:
        return self.kind.after(self, state, token, fact)

    def __str__(self) -> str:
        numbers, defaults = list(self.numbers), list(self.kind.defaults)
        while numbers and numbers[-1] == defaults[len(numbers) - 1]:
            numbers.pop()
        parts = [str(n) if isinstance(n, Schedule) else f"{n:g}" for n in numbers]
        if self.data != ():
            parts.append(brief(self.data))
        return f"{self.name}({', '.join(parts)})"


def brief(data: object) -> str:
    text = getattr(data, "__name__", type(data).__name__) if callable(data) else str(data)
    return text if len(text) <= 40 else f"{text[:36]} ..."


def forget(rule: RuleValue, prompt: Sequence[int]) -> object:
    return None


def keep(rule: RuleValue, state: object, token: int, fact: Candidate) -> object:
    return state


def plainly(rule: RuleValue) -> Packed:
    return rule.numbers, None


def rule(operation: Operation | None = None, *, recalls: bool = False,
         start: Callable[[RuleValue, Sequence[int]], Any] = forget,
         after: Callable[[RuleValue, Any, int, Candidate], Any] = keep,
         pack: Callable[[RuleValue], Packed] = plainly,
         words: Callable[[Any], Sequence[Number]] | None = None,
         entry: bool = False) -> Callable[[Callable[..., Any]], Callable[..., RuleValue]]:
    """Register a definition under its name, and give back the maker of its values.

    `recalls`: it looks at the text so far. `start`, `after`: what it remembers. `entry`: `after`
    wants to know a token's log-probability before this rule, in `Candidate.entry`.
    """

    def register(function: Callable[..., Any]) -> Callable[..., RuleValue]:
        name = function.__name__
        if name in KINDS and KINDS[name].define.__module__ != function.__module__:
            raise ValueError(f"there is a rule {name!r} already, in "
                             f"{KINDS[name].define.__module__}: give this one another name")
        taken = list(signature(function).parameters.values())[1:]
        defaults = tuple(None if p.default is Parameter.empty else p.default for p in taken)
        KINDS[name] = Kind(function, defaults, operation, recalls, start, after, pack, words, entry)

        def make(*numbers: float | Schedule, data: Hashable = ()) -> RuleValue:
            given = [*numbers, *defaults[len(numbers):]]
            if len(numbers) > len(taken) or None in given:
                raise TypeError(f"{name} takes {len(taken)} numbers, not {len(numbers)}")
            return RuleValue(name, tuple(n if isinstance(n, Schedule) else float(n)
                                         for n in given if n is not None), data)

        make.__doc__, make.__name__ = function.__doc__, name
        return make

    return register


def moves_noise(place: Callable[[RuleValue, History, Place], Place]
                ) -> Callable[[Callable[..., RuleValue]], Callable[..., RuleValue]]:
    """Above `@rule`: the noise of a row comes from what `place` makes of its place and of the text
    so far, before any rule shapes the row."""

    def add(make: Callable[..., RuleValue]) -> Callable[..., RuleValue]:
        KINDS[make.__name__] = replace(KINDS[make.__name__], place=place)
        return make

    return add


def place_of_noise(rules: Sequence[RuleValue], text: History | None, place: Place) -> Place:
    """Where the noise of a row comes from, after what its rules make of it."""
    for i in movers(names_of(rules)):
        rule = rules[i]
        assert text is not None and rule.kind.place is not None
        place = rule.kind.place(rule, text, place)
    return place


def names_of(rules: Sequence[RuleValue]) -> tuple[str, ...]:
    """What is asked of rules by name alone can be remembered, and their data forgotten."""
    return tuple([rule.name for rule in rules])


@lru_cache(maxsize=1024)
def movers(names: tuple[str, ...]) -> tuple[int, ...]:
    """The places of those that change where the noise comes from; few do."""
    return tuple(i for i, name in enumerate(names) if KINDS[name].place is not None)


def columns(rules: Sequence[RuleValue]) -> list[NDArray[np.float64]]:
    """The numbers of the same rule on R rows, each as a column [R, 1]."""
    table = np.asarray([r.numbers for r in rules], dtype=np.float64).reshape(len(rules), -1)
    return [table[:, i:i + 1] for i in range(table.shape[1])]
