"""chrF and chrF++: how much two texts share in n-grams of characters, and of words.

Popovic, "chrF: character n-gram F-score for automatic MT evaluation", 2015, and "chrF++: words
helping character n-grams", 2017, with sacreBLEU's defaults (Post 2018, arXiv:1804.08771): grams of
1 to 6 characters without white space, recall counts twice as much as precision, and only orders
that both texts have are averaged. Knows no tokens.
"""
from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from unspool.core.branch import Branch
from unspool.scorers.ngrams import Counts, counted, overlap
from unspool.scorers.text import Piece, texts

CHARACTERS = 6  # the longest gram
RECALL = 4.0  # beta squared
PUNCTUATION = frozenset(string.punctuation)


def words_of(text: str) -> tuple[str, ...]:
    """The words; a punctuation mark at a word's end, else one at its beginning, is parted off."""
    out: list[str] = []
    for word in text.split():
        if len(word) > 1 and word[-1] in PUNCTUATION:
            out += [word[:-1], word[-1]]
        elif len(word) > 1 and word[0] in PUNCTUATION:
            out += [word[0], word[1:]]
        else:
            out.append(word)
    return tuple(out)


def grams_of(text: str, word_order: int) -> list[Counts]:
    """The grams of each order, those of characters first."""
    characters, words = "".join(text.split()), words_of(text)
    return [*(counted(characters, n + 1) for n in range(CHARACTERS)),
            *(counted(words, n + 1) for n in range(word_order))]


def chrf(texts: Sequence[str], word_order: int = 0) -> NDArray[np.float64]:
    """[hypothesis, reference], each 0 to 1: every text against every other.

    A text without a character (white space counts for none) has 0 to all, itself included.
    """
    precision = np.zeros((len(texts), len(texts)))
    recall, orders = np.zeros_like(precision), np.zeros_like(precision)
    for counts in zip(*(grams_of(text, word_order) for text in texts), strict=True):
        total = np.array([one.total() for one in counts], np.float64)
        both = overlap(counts)
        precision += both / np.maximum(total, 1)[:, None]
        recall += both / np.maximum(total, 1)[None, :]
        orders += (total > 0)[:, None] & (total > 0)[None, :]
    precision /= np.maximum(orders, 1)
    recall /= np.maximum(orders, 1)
    below = RECALL * precision + recall
    return (1 + RECALL) * precision * recall / np.where(below > 0, below, 1)


@dataclass(frozen=True, slots=True)
class ChrF:
    """A utility, 0 to 1. `word_order`: the longest gram of words, 0 for chrF and 2 for chrF++."""

    piece: Piece = field(repr=False)
    word_order: int = 0
    states: ClassVar[bool] = False

    def table(self, branches: Sequence[Branch]) -> list[list[float]]:
        found: list[list[float]] = chrf(texts(branches, self.piece), self.word_order).tolist()
        return found
