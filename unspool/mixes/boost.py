"""Contextual boosts: phrases that a text should use more, or less. Styles are sets of them.

Knows ids only; what spells a phrase is decided where there is a tokenizer.
"""
from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from unspool.core.errors import ParameterError
from unspool.core.sockets import Heard, Voice
from unspool.core.values import shown
from unspool.mixes.numbers import Number, check, plain, real
from unspool.mixes.rows import Row, Rows, by_row

NAME = "boosts"
MOST = 1000.0  # a weight's size
Phrases = tuple[tuple[tuple[int, ...], float], ...]


class Automaton:
    """Which phrases stand partly written at the end of a text: a tree of their beginnings, in which
    each node knows the longest other one that ends as it does (Aho and Corasick 1975). It looks at
    the text's last tokens only, one less than the longest phrase has."""

    def __init__(self, phrases: Phrases) -> None:
        self.phrases = phrases
        self.next: list[dict[int, int]] = [{}]  # node: token -> node
        self.through: list[list[int]] = [[]]  # node: the phrases that begin so
        self.back = [0]
        self.reach = max(len(ids) for ids, _ in phrases) - 1
        for place, (ids, _) in enumerate(phrases):
            self.plant(place, ids)
        self.link()
        self.begins = self.summed({token: self.through[node]
                                   for token, node in self.next[0].items()})

    def plant(self, place: int, ids: tuple[int, ...]) -> None:
        node = 0
        for token in ids:
            if token not in self.next[node]:
                self.next[node][token] = len(self.next)
                self.next.append({})
                self.through.append([])
                self.back.append(0)
            node = self.next[node][token]
            self.through[node].append(place)

    def link(self) -> None:
        """Level by level: the ends of shorter beginnings are known."""
        queue = deque(self.next[0].values())
        while queue:
            node = queue.popleft()
            for token, child in self.next[node].items():
                self.back[child] = self.follow(self.back[node], token)
                queue.append(child)

    def follow(self, node: int, token: int) -> int:
        while node and token not in self.next[node]:
            node = self.back[node]
        return self.next[node].get(token, 0)

    def goes_on(self, text: Sequence[int]) -> dict[int, float]:
        """The weight for each token that goes on with a phrase: of each phrase once, and not again
        where the token begins it as well."""
        node = 0
        for token in text[max(len(text) - self.reach, 0):]:
            node = self.follow(node, token)
        wanted: dict[int, set[int]] = {}
        while node:
            for token, child in self.next[node].items():
                fresh = {i for i in self.through[child] if self.phrases[i][0][0] != token}
                wanted.setdefault(token, set()).update(fresh)
            node = self.back[node]
        return self.summed(wanted)

    def summed(self, wanted: Mapping[int, Iterable[int]]) -> dict[int, float]:
        return {token: math.fsum(self.phrases[i][1] for i in places)
                for token, places in wanted.items()}


@dataclass(frozen=True, slots=True)
class Boost:
    """A token gains gain * weight for each phrase that it begins, or that stands partly written at
    the end of the text and that it goes on with; what several phrases say of it adds up. Prompt and
    written text count alike, and a phrase that is fully written may come again. It is the biasing
    of shallow fusion (Zhao et al. 2019, Interspeech), without its penalty for an abandoned phrase.

    `phrases`: pairs of ids and a weight, added to the logit, negative to discourage. `gain`: a
    factor for all, where a schedule has its place. An id that the vocabulary lacks gains nothing.
    ParameterError: no phrase, an empty one, a weight that is no number in -1000..1000.
    """

    phrases: Phrases
    gain: Number = 1.0
    automaton: Automaton | None = field(default=None, compare=False, repr=False)
    voices: ClassVar[tuple[Voice, ...]] = ()
    layers: ClassVar[tuple[int, ...]] = ()
    reads_text: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check("boost_weight", self.gain, -MOST, MOST)
        if self.automaton is None or self.automaton.phrases is not self.phrases:
            checked(self.phrases)
            object.__setattr__(self, "automaton", Automaton(self.phrases))

    def blend(self, heard: Heard) -> Rows:
        gain, automaton = plain(self.gain), self.automaton
        assert automaton is not None

        def boosted(own: Row, text: Sequence[int]) -> Row:
            out = own.copy()
            for weights in (automaton.begins, automaton.goes_on(text)):
                for token, weight in weights.items():
                    if token < len(out):
                        out[token] += gain * weight
            return out

        return by_row(boosted, heard.own, heard.texts)


def checked(phrases: Phrases) -> None:
    if not phrases:
        raise ParameterError(f"{NAME}: no phrase; give one, or leave it out", NAME)
    for ids, weight in phrases:
        if not ids or any(type(token) is not int or token < 0 for token in ids):
            raise ParameterError(f"{NAME}: {shown(ids)} is no phrase; give the ids of a text, one "
                                 "at least", NAME)
        if not abs(real(weight)) <= MOST:
            raise ParameterError(f"{NAME}: weight {shown(weight)} must be a number in "
                                 f"{-MOST:g}..{MOST:g}; only the factor of all may be a schedule",
                                 NAME)


def styles(sets: Mapping[str, Sequence[Sequence[int]]], weights: Mapping[str, float],
           gain: Number = 1.0) -> Boost:
    """The boost of named sets of phrases, each with the weight of its name. A set without a weight
    is not used. ParameterError: a weight for a set that is not there."""
    unknown = [name for name in weights if name not in sets]
    if unknown:
        raise ParameterError(f"{NAME}: no set of phrases has the name {shown(unknown[0])}; there "
                             f"are {', '.join(sets) or 'none'}", NAME)
    return Boost(tuple((tuple(ids), weights[name]) for name, phrases in sets.items()
                       if name in weights for ids in phrases), gain)
