"""Whether a text has an attribute, as far as it is written: what guides a model to write one.

FUDGE (Yang and Klein 2021, arXiv:2104.05218) asks for each token that may come next how likely the
attribute then is. `Bag` answers from counts of tokens and pairs of tokens (naive Bayes), `train`
counts them in two lists of texts. Knows no model and no rows.
"""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

from unspool.core.errors import ParameterError

Gram = tuple[int, ...]  # a token, or one and the next


class AttributeScorer(Protocol):
    """A classifier of texts that may go on."""

    def log_probability(self, ids: Sequence[int], candidates: Sequence[int]) -> Sequence[float]:
        """For each candidate log P(attribute | the text `ids` and then it), natural logs."""
        ...


def grams(ids: Sequence[int]) -> Iterator[Gram]:
    yield from zip(ids)
    yield from pairwise(ids)


@dataclass(frozen=True, slots=True)
class Bag:
    """`odds`: for each gram the log of how much more often texts with the attribute have it.
    `prior`: the log odds of a text of which nothing is known. A gram not seen says nothing."""

    odds: tuple[tuple[Gram, float], ...] = field(repr=False)
    prior: float = 0.0
    known: dict[Gram, float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "known", dict(self.odds))

    def log_probability(self, ids: Sequence[int], candidates: Sequence[int]) -> list[float]:
        so_far = math.fsum([self.prior, *(self.known.get(gram, 0.0) for gram in grams(ids))])
        return [log_sigmoid(so_far + self.added(ids, token)) for token in candidates]

    def added(self, ids: Sequence[int], token: int) -> float:
        """The odds of the grams that end in `token` once it is written."""
        alone = self.known.get((token,), 0.0)
        return alone + self.known.get((ids[-1], token), 0.0) if len(ids) else alone


def log_sigmoid(odds: float) -> float:
    """log 1 / (1 + exp(-odds)), without overflow and exact to the last digits on both sides."""
    return min(odds, 0.0) - math.log1p(math.exp(-abs(odds)))


def train(positive: Sequence[str], negative: Sequence[str],
          encode: Callable[[str], Sequence[int]]) -> Bag:
    """The classifier that two lists of texts teach: those with the attribute, those without.

    `encode`: the ids of a text as the model writes it, without a start token. Each gram is counted
    once more than it is there (Laplace), single tokens and pairs each among their own kind; the
    prior is the share of the texts. The same texts in another order give the same.
    Raises ParameterError for a list without a text.
    """
    counts: list[Counter[Gram]] = []
    for name, texts in (("positive", positive), ("negative", negative)):
        if isinstance(texts, str) or not texts:
            raise ParameterError(f"{name}: must be a list of texts; give one at least", name)
        counts.append(Counter(gram for text in texts for gram in grams(encode(text))))
    seen = sorted(counts[0] | counts[1])
    kinds = Counter(map(len, seen))
    totals = [Counter(kinds) for _ in counts]
    for count, total in zip(counts, totals, strict=True):
        for gram, often in count.items():
            total[len(gram)] += often
    with_it, without = ({gram: math.log((count[gram] + 1) / total[len(gram)]) for gram in seen}
                        for count, total in zip(counts, totals, strict=True))
    odds = tuple((gram, with_it[gram] - without[gram]) for gram in seen)
    return Bag(odds, math.log(len(positive) / len(negative)))
