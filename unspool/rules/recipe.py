"""A recipe: the rules of one request, ready for the kernel."""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from unspool.kernels.shaping.recipe import states_of, table_of
from unspool.rules.rule import RuleValue, plainly

Words = NDArray[np.int64]
Rules = tuple[RuleValue, ...]
MOST, ROOM = 1024, 2**29  # recipes that are kept, and bytes of them
ITEM = 128  # bytes of one item of a rule's data, as Python holds it


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """Rules that all have operations. `address`: of the table; `kept`: what that points to."""

    rules: Rules
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


def recipe(rules: Rules) -> Recipe:
    packed = [rule.kind.pack(rule) for rule in rules]
    steps = [(rule.kind.operation, numbers)
             for rule, (numbers, _) in zip(rules, packed, strict=True)]
    table = table_of(steps)  # type: ignore[arg-type]
    return Recipe(rules, table, table.ctypes.data, tuple(kept for _, kept in packed),
                  any(rule.kind.words is not None for rule in rules))


class Recipes:
    """Those made of late, to be had again. The oldest go when there are too many, or when they take
    too much memory: the ids of one request may be megabytes."""

    def __init__(self, most: int = MOST, room: int = ROOM) -> None:
        self.most, self.room = most, room
        self.known: OrderedDict[Rules, tuple[Recipe, int]] = OrderedDict()
        self.nbytes = 0
        self.lock = Lock()

    def __call__(self, rules: Rules) -> Recipe:
        key = tuple([bare(rule) for rule in rules])
        with self.lock:
            if key in self.known:
                self.known.move_to_end(key)
                return self.known[key][0]
        made = recipe(key)
        size = sum(map(size_of, key, made.kept))
        with self.lock:
            _, before = self.known.pop(key, (made, 0))
            self.known[key] = made, size
            self.nbytes += size - before
            while len(self.known) > self.most or (self.nbytes > self.room and len(self.known) > 1):
                _, (_, gone) = self.known.popitem(last=False)
                self.nbytes -= gone
        return made

    def clear(self) -> None:
        with self.lock:
            self.known.clear()
            self.nbytes = 0


def bare(rule: RuleValue) -> RuleValue:
    """The rule without data that its table says nothing of, so that nothing keeps it."""
    if rule.data == () or rule.kind.pack is not plainly:
        return rule
    return RuleValue(rule.name, rule.numbers)


def size_of(rule: RuleValue, kept: object) -> int:
    """About how many bytes a rule takes, with what it was packed into."""
    arrays = kept if isinstance(kept, tuple) else (kept,)
    items = len(rule.data) if isinstance(rule.data, tuple) else 0
    return sum(getattr(array, "nbytes", 0) for array in arrays) + ITEM * items


recipe_of = Recipes()
