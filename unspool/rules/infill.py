"""Infill: for a gap between two texts. It ends the text as soon as that is likely enough, and
otherwise keeps tokens that it is sure of."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.rules.rows import Rows
from unspool.rules.rule import rule

Floats = NDArray[np.float64]
LEAST = 0.2  # probability of a token that stays


@dataclass(frozen=True, slots=True)
class Spelling:
    """The bytes of every token, b"" for one that is no text, and the ids that end a text; the first
    of them is written where nothing else is left."""

    pieces: tuple[bytes, ...]
    ends: tuple[int, ...]

    def __str__(self) -> str:
        return f"{len(self.pieces)} pieces"

    def of(self, token: int) -> bytes:
        """An id beyond the vocabulary of the words is no text."""
        return self.pieces[token] if token < len(self.pieces) else b""


@rule()
def infill(rows: Rows) -> Any:
    """Only tokens that end the text if 3 * p(end) * n > p(other), n being the tokens that are left.
    Otherwise tokens that begin alike are taken for one, and what is at least 0.2 likely stays, then
    of k such tokens what has 1 / (k + 1) of their mass; ends stay (llama.cpp: "infill"). What stays
    keeps its logit, as there: the draw does not see which tokens were taken for one.

    The data is a Spelling.
    """
    out = np.full(rows.values.shape, -np.inf)
    for row, values, p, words in zip(out, np.asarray(rows.values), np.asarray(rows.probs),
                                     rows.data, strict=True):
        ids = [token for token in np.argsort(-p, stable=True).tolist() if p[token] > 0]
        kept = sure(ids, p.copy(), words)
        row[kept] = values[kept]
        if ids and not kept:
            row[words.ends[0]] = 0.0
    return rows.like(out)


def sure(ids: Sequence[int], p: Floats, words: Spelling) -> list[int]:
    """Which of these tokens stay, likeliest first; none if nothing is likely enough."""
    ends = frozenset(words.ends)
    ending = [token for token in ids if token in ends]
    end = float(p[ending].sum())
    if 3 * end * len(ids) > float(p[ids].sum()) - end:
        return ending
    dead = take_together(ids, p, words)
    left = [token for token in ids if token not in dead]
    left = [token for token in left if token in ends or p[token] >= LEAST]
    others = sum(token not in ends for token in left)
    if not others:
        return []
    mass = float(p[left].sum())
    return [token for token in left if token in ends or p[token] / mass >= 1 / (others + 1)]


def take_together(ids: Sequence[int], p: Floats, words: Spelling) -> set[int]:
    """Of tokens one of which begins with the other, add the probability of the less likely to the
    other's, likeliest pairs first. Gives those whose own is gone."""
    spelled: dict[bytes, list[int]] = {}
    for token in ids:
        spelled.setdefault(words.of(token), []).append(token)
    longer: dict[int, list[int]] = {token: [] for token in ids}
    for token in ids:
        for size in range(1, len(words.of(token)) + 1):
            for beginning in spelled.get(words.of(token)[:size], ()):
                longer[beginning].append(token)
    gone: set[int] = set()
    for token in ids:
        for other in longer[token]:
            if token in gone:
                break
            if other == token or other in gone:
                continue
            less, more = (token, other) if p[other] > p[token] else (other, token)
            p[more] += p[less]
            gone.add(less)
    return gone
