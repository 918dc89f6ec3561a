"""A prefix: one token and all tokens before it, as a persistent sequence that never changes.

Branches that part share the nodes before the parting, so a fork copies nothing, and "the longest
prefix that is known" is found by walking up a few nodes. It does not know what the tokens mean.
"""
from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from math import nan
from typing import NamedTuple

BLOCK = 16  # tokens whose keys are found together; a digest is taken at each block's end


class Candidate(NamedTuple):
    """A token at one slot, as the model and the rules see it.

    `logprob`: natural log-probability before the rules (raw); `processed`: after them;
    `rank`: 1 for the likeliest token before the rules; `peak`: that token's raw log-probability.
    `others`: the likeliest (token, raw log-probability) at the slot, as many as were asked for.
    `entry`: its log-probability before the rule that wants to know it, NaN where none does.
    `row`: the slot's scores and all that shaped them, where the request asks why; opaque here.
    `state`: the model's last hidden state of the token before it, where a reading asks; opaque too.
    """

    token: int
    logprob: float
    processed: float
    rank: int
    peak: float
    others: tuple[tuple[int, float], ...] = ()
    entry: float = nan
    row: object = None
    state: object = None


class Prefix:
    """The tokens up to and including `token`; `length` of them, the root having none.

    `fact` is what was read when the token was written, None for a token of the prompt.
    `lease` is the ticket of the memory entry that last held this prefix, a hint and no promise.
    """

    __slots__ = ("parent", "token", "length", "digest", "fact", "lease")

    def __init__(self, parent: Prefix | None, token: int, fact: Candidate | None = None) -> None:
        self.parent, self.token, self.fact, self.lease = parent, token, fact, -1
        self.length: int
        self.digest: bytes
        if parent is None:
            self.length, self.digest = 0, b""
            return
        self.length, self.digest = parent.length + 1, parent.digest
        if self.length % BLOCK == 0:
            self.digest = sha256(self.digest + repr(self.last(BLOCK)).encode()).digest()

    def extend(self, token: int, fact: Candidate | None = None) -> Prefix:
        return Prefix(self, token, fact)

    def last(self, count: int) -> list[int]:
        """The last `count` tokens (fewer when the prefix is shorter), oldest first."""
        node = self
        out: list[int] = []
        while node.parent is not None and len(out) < count:
            out.append(node.token)
            node = node.parent
        return out[::-1]

    def tokens(self) -> list[int]:
        return self.last(self.length)

    def at(self, length: int) -> Prefix:
        """The prefix of this one that has `length` tokens."""
        node = self
        while node.length > length:
            node = node.parent  # type: ignore[assignment]  # length 0 is the root, never passed
        return node

    def facts(self, count: int) -> list[Candidate]:
        """What was read for each of the last `count` tokens, oldest first."""
        node = self
        out: list[Candidate] = []
        while node.parent is not None and len(out) < count:
            assert node.fact is not None, "a written token has its facts"
            out.append(node.fact)
            node = node.parent
        return out[::-1]


def prefix(tokens: Iterable[int]) -> Prefix:
    node = Prefix(None, -1)
    for token in tokens:
        node = Prefix(node, token)
    return node


def shared(one: Prefix, other: Prefix) -> int:
    """How many tokens both begin with. Stops at the first node they have in common."""
    length = min(one.length, other.length)
    a, b, same = one.at(length), other.at(length), length
    while a is not b and a.parent is not None and b.parent is not None:
        if a.token != b.token:
            same = a.length - 1
        a, b = a.parent, b.parent
    return same
