"""Rules that keep the likeliest tokens. Exactly as many as asked; ties go to the lowest id."""
from __future__ import annotations

import numpy as np

from unspool.kernels.reading.head import Head
from unspool.kernels.reading.plain import Floats
from unspool.rules.rule import rule

EDGE = 1e-6  # mass by which a sum of rounded probabilities may miss the bound it should reach


@rule()
def greedy(head: Head) -> None:
    """Keep the likeliest token."""
    head.cut_tail(head.rank >= 1)


@rule()
def top_k(head: Head, k: Floats) -> None:
    """Keep the k likeliest tokens (Fan et al. 2018, arXiv:1805.04833); 0 and -1 keep all."""
    head.cut_tail((head.rank >= k) & (k > 0))


@rule()
def top_p(head: Head, p: Floats) -> None:
    """Keep the smallest set of likeliest tokens with mass p (Holtzman et al., arXiv:1904.09751)."""
    head.cut_tail((head.above >= p - EDGE) & (p < 1))


@rule()
def min_p(head: Head, p: Floats) -> None:
    """Keep tokens at least p times as likely as the likeliest (arXiv:2407.01082)."""
    with np.errstate(divide="ignore"):  # p = 0 keeps all
        head.cut_tail(head.values < head.maximum + np.log(p))
