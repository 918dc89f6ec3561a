"""Cuts of the tail: of the best tokens, how many stay. The rules' own texts say what each means."""
from __future__ import annotations

from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.lanes import lane
from unspool.kernels.machine.simd import f64x8, fill, read_f64
from unspool.kernels.reading.draw import floats
from unspool.kernels.reading.facts import log_of
from unspool.kernels.reading.floats import exp
from unspool.kernels.shaping.row import (
    ALL,
    COUNT,
    MASS,
    SIGNATURE,
    UNKNOWN,
    VALUES,
    WISH,
    number,
    set_word,
    value_at,
    word,
)

EDGE = 1e-6  # mass by which a sum of rounded probabilities may miss the bound it should reach
NEAR = 1e-9  # and what one rounded number may miss: a log-probability, a share


@inner
def reaching(row: int, least: float) -> int:
    """How many of the best tokens have at least this value; the likeliest always counts."""
    for i in range(1, word(row, COUNT)):
        if value_at(row, i) < least:
            return i
    return UNKNOWN


@kernel(SIGNATURE)
def greedy(row: int, numbers: int, state: int) -> int:
    return 1


@kernel(SIGNATURE)
def top_k(row: int, numbers: int, state: int) -> int:
    """k, and 1 to keep all that are as likely as the k-th."""
    k, count = int(read_f64(numbers)), word(row, COUNT)
    if k <= 0:
        return ALL
    if read_f64(numbers + 8) != 0.0 and k <= count:
        least = value_at(row, k - 1)
        while k < count and value_at(row, k) == least:
            k += 1
        return UNKNOWN if k == count else k
    if k <= count:
        return k
    set_word(row, WISH, k)
    return UNKNOWN


@kernel(SIGNATURE)
def top_p(row: int, numbers: int, state: int) -> int:
    p, before, count = read_f64(numbers), 0.0, word(row, COUNT)
    values, norm = word(row, VALUES), fill(f64x8, number(row, MASS))
    if p >= 1.0:
        return ALL
    for first in range(0, count, 8):
        share = exp(floats(values + 8 * first, count - first) - norm)
        for i in range(min(8, count - first)):
            if first + i > 0 and before >= p - EDGE:
                return first + i
            before += lane(share, i)
    return UNKNOWN


@kernel(SIGNATURE)
def min_p(row: int, numbers: int, state: int) -> int:
    p = read_f64(numbers)
    if p <= 0.0:
        return ALL
    return reaching(row, value_at(row, 0) + log_of(p))
