"""Cuts that steer the surprise of the text. State: mu, the most surprise allowed, in bits."""
from __future__ import annotations

from numba import types

from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.simd import read_f64
from unspool.kernels.reading.facts import exp_of, log_of
from unspool.kernels.shaping.cuts import NEAR, reaching
from unspool.kernels.shaping.row import (
    ALL,
    COUNT,
    MASS,
    MORE_BEYOND,
    SIGNATURE,
    UNKNOWN,
    VOCAB,
    number,
    value_at,
    word,
)

f64 = types.float64
LN2 = 0.6931471805599453
BEST_OF_MIROSTAT = 100  # tokens from which the exponent of Zipf's law is estimated
SMALL, LARGE = 1e-5, 1e12


@inner
def zipf(row: int, count: int) -> float:
    """The exponent by which the first `count` probabilities fall: least squares in logs."""
    products, squares = 0.0, 0.0
    for i in range(count - 1):
        t = log_of(f64(i + 2) / f64(i + 1))
        products += t * (value_at(row, i) - value_at(row, i + 1))
        squares += t * t
    return products / squares


@inner
def fullness(excess: float, log_vocab: float) -> float:
    """excess / (1 - vocabulary ** -excess): 1 over the sum of Zipf's law, as an integral."""
    x = -excess * log_vocab
    if abs(x) > SMALL:
        return excess / (1.0 - exp_of(x))
    return 1.0 / (log_vocab * (1.0 + x / 2 + x * x / 6))


@kernel(SIGNATURE)
def mirostat_1(row: int, numbers: int, state: int) -> int:
    count = min(word(row, COUNT), BEST_OF_MIROSTAT)
    if count < BEST_OF_MIROSTAT and word(row, MORE_BEYOND) != 0:
        return UNKNOWN
    if count < 2:
        return 1
    s = zipf(row, count)
    log = log_of(fullness(s - 1.0, log_of(f64(word(row, VOCAB))))) + read_f64(state) * LN2
    k = exp_of((log + NEAR) / s)
    if k >= LARGE:
        return ALL
    kept = int(max(k, 1.0)) if k == k else 1
    return kept if kept <= word(row, COUNT) else UNKNOWN


@kernel(SIGNATURE)
def mirostat_2(row: int, numbers: int, state: int) -> int:
    return reaching(row, number(row, MASS) - read_f64(state) * LN2 - NEAR)
