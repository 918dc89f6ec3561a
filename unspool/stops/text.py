"""Ending at a string: found in the bytes of the written text, across the borders of tokens.

Knows tokens only by the bytes they add. One automaton looks for all strings at once (Aho and
Corasick, "Efficient string matching", 1975), so a token costs its own bytes, not the text's.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from unspool.core.branch import Branch, Ended
from unspool.core.errors import ParameterError
from unspool.core.values import shown

NONE = -1


@dataclass(slots=True)
class Automaton:
    """Where in which string the text stands. Node 0 is nowhere; a node's depth is its bytes.

    `edges`: node * 256 + byte to the node after it. `back`: the node of the longest proper suffix.
    `found`: the longest string that ends at a node, by its index, or NONE.
    """

    edges: dict[int, int] = field(default_factory=dict)
    back: list[int] = field(default_factory=lambda: [0])
    depth: list[int] = field(default_factory=lambda: [0])
    found: list[int] = field(default_factory=lambda: [NONE])

    def step(self, node: int, byte: int) -> int:
        """The node after one more byte. The way back is paid for by the bytes that led there."""
        while (after := self.edges.get(node << 8 | byte)) is None and node:
            node = self.back[node]
        return after or 0

    def grow(self, node: int, byte: int) -> int:
        """The child of `node`, made if need be. All nodes of lesser depth must be there."""
        if (child := self.edges.get(node << 8 | byte)) is None:
            suffix = self.step(self.back[node], byte) if node else 0
            child = self.edges[node << 8 | byte] = len(self.back)
            self.back.append(suffix)
            self.depth.append(self.depth[node] + 1)
            self.found.append(self.found[suffix])
        return child

    def first(self, data: bytes, node: int = 0) -> tuple[int, int, int]:
        """(node, string, bytes read): up to the first string that completes, or NONE and all."""
        for place, byte in enumerate(data, 1):
            node = self.step(node, byte)
            if self.found[node] != NONE:
                return node, self.found[node], place
        return node, NONE, len(data)


def build(patterns: Sequence[bytes], chosen: Sequence[int]) -> Automaton:
    """The automaton of the chosen patterns, level by level."""
    automaton = Automaton()
    at = dict.fromkeys(chosen, 0)
    level = 0
    while at:
        at = {i: automaton.grow(node, patterns[i][level]) for i, node in at.items()}
        level += 1
        for i in [i for i in at if len(patterns[i]) == level]:
            automaton.found[at.pop(i)] = i
    return automaton


@lru_cache(maxsize=64)
def automaton_of(strings: tuple[str, ...]) -> Automaton:
    """The automaton of those strings that can complete first.

    One that has another inside it, complete before its own end, never does; to wait for it would
    hold back text for nothing.
    """
    patterns = [string.encode() for string in strings]
    every = build(patterns, range(len(patterns)))
    able = [i for i, data in enumerate(patterns) if every.first(data)[2] == len(data)]
    return every if len(able) == len(patterns) else build(patterns, able)


@dataclass(frozen=True, slots=True)
class StopStrings:
    """Ends when one of `strings` completes; the first to complete wins, of several the longest.

    `piece`: the bytes that a token adds to the text. The prompt is not looked at. The answer ends
    before the string, or after it with `include`. The state is a node of the automaton. An empty
    string is refused with a ParameterError.
    """

    strings: tuple[str, ...]
    piece: Callable[[int], bytes]
    include: bool = False
    automaton: Automaton = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        strings = tuple(self.strings)
        if not all(strings):
            rule = "each must have a character; drop ''"
            raise ParameterError(f"stop={shown(strings)}: {rule}", "stop")
        object.__setattr__(self, "strings", strings)
        object.__setattr__(self, "automaton", automaton_of(strings))

    def start(self) -> int:
        return 0

    def after(self, state: Any, branch: Branch) -> tuple[int, Ended | None]:
        data = self.piece(branch.settled.token)
        node, which, read = self.automaton.first(data, state)
        if which == NONE:
            return node, None
        size = 0 if self.include else len(self.strings[which].encode())
        return node, Ended("stop", self.strings[which], len(data) - read + size)

    def held(self, state: int) -> int:
        """How many last bytes may yet be cut: those a stream must not show."""
        return 0 if self.include else self.automaton.depth[state]
