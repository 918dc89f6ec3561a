"""BLEU of single texts: how many of a text's word n-grams another has.

Papineni et al. 2002, as sacreBLEU scores a sentence (Post 2018, arXiv:1804.08771): grams of 1 to 4
words, orders that the text is too short for left out, and for each order without a match half the
one before (Chen and Cherry 2014, method 3). Words are parted as by `13a`, the tokenizer of
mteval-v13a.pl, made for languages that write spaces. Knows no tokens of a model.
"""
from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from unspool.core.branch import Branch
from unspool.scorers.ngrams import counted, overlap
from unspool.scorers.text import Piece, texts

WORDS = 4  # the longest gram
PLAIN = {"<skipped>": "", "-\n": "", "\n": " ", "&quot;": '"', "&amp;": "&", "&lt;": "<",
         "&gt;": ">"}
PARTED = (
    (re.compile(r"([{-~\[-` -&(-+:-@/])"), r" \1 "),  # symbols, but for ' , - .
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),  # a point or comma that follows no digit
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),  # one that stands before no digit
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),  # a dash behind a digit
)


def words_of(text: str) -> tuple[str, ...]:
    """The words and marks of a text, as `13a` parts them."""
    text = text.rstrip()
    for mark, plain in PLAIN.items():
        text = text.replace(mark, plain)
    text = f" {text} "
    for pattern, parted in PARTED:
        text = pattern.sub(parted, text)
    return tuple(text.split())


def score(matched: Sequence[int], words: int, reference: int) -> float:
    """`matched`: of each order, the grams of a text of `words` words that a reference of
    `reference` words has."""
    orders = min(WORDS, words)
    if not any(matched):
        return 0.0
    logs, half = [], 1.0
    for order in range(orders):
        if not matched[order]:
            half /= 2
        logs.append(math.log((matched[order] or half) / (words - order)))
    brevity = min(0.0, 1 - reference / words)
    return math.exp(brevity + sum(logs) / orders)


def bleu(texts: Sequence[str]) -> list[list[float]]:
    """[hypothesis, reference], each 0 to 1: every text against every other.

    A text without words has 0 to all, itself included.
    """
    words = [words_of(text) for text in texts]
    both = np.array([overlap([counted(one, n + 1) for one in words]) for n in range(WORDS)])
    matched = np.moveaxis(both, 0, -1).tolist()
    return [[score(matched[i][j], len(one), len(other)) for j, other in enumerate(words)]
            for i, one in enumerate(words)]


@dataclass(frozen=True, slots=True)
class Bleu:
    """A utility, 0 to 1."""

    piece: Piece = field(repr=False)
    states: ClassVar[bool] = False

    def table(self, branches: Sequence[Branch]) -> list[list[float]]:
        return bleu(texts(branches, self.piece))
