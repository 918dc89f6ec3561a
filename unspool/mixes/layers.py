"""DoLa, decoding by contrasting layers: what the last layer knows and an inner one did not yet."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unspool.core.errors import ParameterError
from unspool.core.sockets import Heard, Voice
from unspool.core.values import shown
from unspool.mixes.numbers import Number, check, plain
from unspool.mixes.rows import Row, Rows, by_row, log_softmax, logprobs, plausible

NAME = "dola_layers"
DEEP, MOST = 40, 20  # above 40 layers candidates are among the first or last 20


@dataclass(frozen=True, slots=True)
class Dola:
    """log p_N - log p_M over the tokens with p_N >= cut * max p_N. N is the last layer, M for each
    row the candidate whose distribution lies farthest from the last one's by the Jensen-Shannon
    divergence; of equally far ones the first (Chuang et al. 2023, arXiv:2309.03883).

    `candidates`: inner layers, see `buckets`. The paper adds a repetition penalty of 1.2.
    transformers 4.55 differs: one M for a whole batch, and another divergence.
    """

    candidates: tuple[int, ...]
    cut: Number = 0.1
    voices: ClassVar[tuple[Voice, ...]] = ()
    reads_text: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check("contrast_alpha", self.cut, 0, 1)
        if not self.candidates:
            raise ParameterError(f"{NAME}=(): no layer to contrast with; name one", NAME)

    @property
    def layers(self) -> tuple[int, ...]:
        return self.candidates

    def blend(self, heard: Heard) -> Rows:
        cut = plain(self.cut)

        def contrasted(own: Row, *inner: Row) -> Row:
            last = log_softmax(own)
            far = [jensen_shannon(last, log_softmax(row)) for row in inner]
            premature = inner[int(np.argmax(far))]
            return np.where(plausible(own, cut), logprobs(own) - logprobs(premature), -np.inf)

        return by_row(contrasted, heard.own, *[heard.inner[layer] for layer in self.candidates])


def jensen_shannon(p: Row, q: Row) -> float:
    """(KL(p | m) + KL(q | m)) / 2 with m = (p + q) / 2, from log-probabilities; in nats, 0..log 2
    (Lin 1991)."""
    middle = np.logaddexp(p, q) - np.log(2)
    return float(divergence(p, middle) + divergence(q, middle)) / 2


def divergence(p: Row, q: Row) -> float:
    """KL(p | q): what p does not have counts 0."""
    has = np.exp(p) > 0
    apart = np.where(has, p, 0.0) - np.where(has, q, 0.0)
    return float((np.exp(p) * apart).sum())


def buckets(layers: int, tied: bool, which: str | Sequence[int]) -> tuple[int, ...]:
    """The candidates among the inner layers 0..layers-1 of a model; 0 is the embeddings.

    "low", "high": every second layer of the lower or upper half, in models of more than 40 layers
    of the first or last 20, as in the paper and transformers 4.55. With `tied` embeddings never
    layer 0, whose head says the token just read: "low" begins at layer 2, in a model of two layers
    at 1. A list is checked and put in order.
    Raises ParameterError: an unknown word, a layer that the model has not, no layer left.
    """
    if layers < 1:
        raise ParameterError(f"{NAME}={shown(which)}: inner layers of this model cannot be read; "
                             "leave it out", NAME)
    if not isinstance(which, str):
        return listed(layers, which)
    part = MOST if layers > DEEP else layers // 2
    first = min(2, layers - 1) if tied else 0
    if which == "low":
        found = tuple(range(first, max(part, first + 1), 2))
    elif which == "high":
        found = tuple(range(layers - MOST if layers > DEEP else part, layers, 2))
    else:
        raise ParameterError(f"{NAME}={shown(which)}: must be low, high or a list of layers; give "
                             "one of them", NAME)
    if tied and 0 in found:
        raise ParameterError(f"{NAME}={which!r}: the one layer of this model below the last is its "
                             "embeddings, which are tied to the head; leave it out", NAME)
    return found


def listed(layers: int, which: Sequence[int]) -> tuple[int, ...]:
    wrong = [layer for layer in which if type(layer) is not int or not 0 <= layer < layers]
    if wrong or not which:
        what = f"{shown(wrong[0])} is no inner layer" if wrong else "no layer is named"
        raise ParameterError(f"{NAME}: {what}; name some of 0..{layers - 1}", NAME)
    return tuple(sorted(set(which)))
