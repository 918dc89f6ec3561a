"""What texts share, counted in n-grams. Knows no characters and no words: a gram is a key.

The grams of a text are counted once, and a pair of texts is then an intersection of counts. All
sums are of whole numbers, so a pair gives the same bits whatever it is computed with.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

Counts = Counter[Hashable]
NONE = np.zeros(0, np.int64)


def counted(symbols: Sequence[Hashable], order: int) -> Counts:
    """The runs of `order` symbols; of a string these are strings, of a tuple tuples."""
    return Counter(symbols[i:i + order] for i in range(len(symbols) - order + 1))


def overlap(counts: Sequence[Counts]) -> NDArray[np.int64]:
    """[text, text]: the grams that both have, each as often as the one that has it less often."""
    table: dict[Hashable, int] = {}
    ids = [np.array([table.setdefault(gram, len(table)) for gram in one], np.int64)
           for one in counts]
    often = [np.array(list(one.values()), np.int64) for one in counts]
    every, all_often = np.concatenate([NONE, *ids]), np.concatenate([NONE, *often])
    ends = np.cumsum([0, *map(len, counts)])
    out = np.zeros((len(counts), len(counts)), np.int64)
    row = np.zeros(len(table), np.int64)
    for text, (own, times) in enumerate(zip(ids, often, strict=True)):
        row[own] = times
        sums = np.concatenate([[0], np.cumsum(np.minimum(row[every], all_often))])
        out[text] = np.diff(sums[ends])
        row[own] = 0
    return out
