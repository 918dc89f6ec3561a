"""Noise: the only randomness there is, a pure function of (seed, choice, position, draw, token).

Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). The key is
the seed's two halves; the counter is (token // 4, position, choice, draw); token % 4 picks the
word. So a text is the same alone, in a batch, chunked, preempted or drafted.
"""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

ROUNDS = 10
MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
WEYL = (0x9E3779B9, 0xBB67AE85)
MASK = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
USES = {"pick": 0, "xtc": 1, "accept": 2, "residual": 3, "perturb": 4, "unmask": 5}

Words = tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]


def philox(counter: tuple[Any, Any, Any, Any], key: tuple[int, int]) -> Words:
    """Four 32-bit words (held in uint64) for each counter; the four parts broadcast together."""
    parts = np.broadcast_arrays(*(np.asarray(c, dtype=np.uint64) for c in counter))
    a, b, c, d = (p & MASK for p in parts)
    k0, k1 = key
    for _ in range(ROUNDS):
        x, y = a * MULTIPLIERS[0], c * MULTIPLIERS[1]
        a, b, c, d = (
            (y >> HALF) ^ b ^ np.uint64(k0), y & MASK, (x >> HALF) ^ d ^ np.uint64(k1), x & MASK)
        k0, k1 = (k0 + WEYL[0]) & 0xFFFFFFFF, (k1 + WEYL[1]) & 0xFFFFFFFF
    return a, b, c, d


def draw(use: str, replaced: int = 0) -> int:
    """The counter's last part: what the number is for, and how often the branch was replaced."""
    return USES[use] + len(USES) * replaced


def uniform(seed: int, choice: int, position: int, draw: int,
            tokens: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
    """One number in the open interval (0, 1) per token id, in steps of 2**-32."""
    key = (seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF)
    wanted = tokens >> 2
    low, high = int(wanted.min()), int(wanted.max())
    if high - low < len(tokens):  # nearly every block is wanted: cheaper than to look which
        blocks, inverse = np.arange(low, high + 1), wanted - low
    else:
        blocks, inverse = np.unique(wanted, return_inverse=True)
    words = np.stack(philox((blocks, position, choice, draw), key), axis=-1)
    chosen = words[inverse, tokens & 3]
    return np.asarray((chosen.astype(np.float64) + 0.5) * 2.0**-32)


def gumbel(seed: int, choice: int, position: int, draw: int,
           tokens: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
    """Standard Gumbel noise per token: the argmax of log-probability plus it is a fair pick."""
    return np.asarray(-np.log(-np.log(uniform(seed, choice, position, draw, tokens))))
