"""Cuts at a bound that the row itself sets: how likely a token must be to stay, or how much of the
row's curve or entropy is spent. The rules' own texts say what each means."""
from __future__ import annotations

from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.lanes import square_root
from unspool.kernels.machine.simd import f64x8, fill, read_f64, store
from unspool.kernels.reading.draw import floats, norm_of
from unspool.kernels.reading.facts import exp_of, log_of
from unspool.kernels.reading.floats import exp
from unspool.kernels.shaping.cuts import NEAR, reaching
from unspool.kernels.shaping.eights import spread
from unspool.kernels.shaping.row import (
    ALL,
    COUNT,
    ENTROPY,
    MASS,
    MORE_BEYOND,
    ROOM,
    SIGNATURE,
    UNKNOWN,
    VALUES,
    VOCAB,
    number,
    value_at,
    word,
)

BEST_OF_TOP_H = 100  # tokens that top_h looks at


@inner
def likely(row: int, bound: float) -> int:
    """How many tokens have this log-probability, or that of the likeliest."""
    return reaching(row, min(number(row, MASS) + bound - NEAR, value_at(row, 0)))


@kernel(SIGNATURE)
def epsilon_cutoff(row: int, numbers: int, state: int) -> int:
    epsilon = read_f64(numbers)
    if epsilon <= 0.0:
        return ALL
    return likely(row, log_of(epsilon))


@kernel(SIGNATURE)
def eta_cutoff(row: int, numbers: int, state: int) -> int:
    if read_f64(numbers) <= 0.0:
        return ALL
    log = log_of(read_f64(numbers))
    return likely(row, min(log, log / 2 - number(row, ENTROPY)))


@kernel(SIGNATURE)
def top_a(row: int, numbers: int, state: int) -> int:
    a, mass = read_f64(numbers), number(row, MASS)
    if a <= 0.0:
        return ALL
    return likely(row, log_of(a) + 2 * (value_at(row, 0) - mass))


@kernel(SIGNATURE)
def top_n_sigma(row: int, numbers: int, state: int) -> int:
    n = read_f64(numbers)
    if n <= 0.0:
        return ALL
    return reaching(row, value_at(row, 0) - n * square_root(spread(row)[1]) - NEAR)


@kernel(SIGNATURE)
def top_h(row: int, numbers: int, state: int) -> int:
    share, count = read_f64(numbers), min(word(row, COUNT), BEST_OF_TOP_H)
    if share <= 0.0:
        return ALL
    if count < BEST_OF_TOP_H and word(row, MORE_BEYOND) != 0:
        return UNKNOWN
    norm, whole, spent = norm_of(word(row, VALUES), count), 0.0, 0.0
    for i in range(count):
        whole -= exp_of(value_at(row, i) - norm) * (value_at(row, i) - norm)
    for i in range(count):
        spent -= exp_of(value_at(row, i) - norm) * (value_at(row, i) - norm)
        if i > 0 and spent > share * whole + NEAR:
            return i
    return count


@inner
def bend(probs: int) -> float:
    """The second difference of three probabilities, its size."""
    one, two, three = read_f64(probs), read_f64(probs + 8), read_f64(probs + 16)
    return abs((three - two) - (two - one))


@kernel(SIGNATURE)
def tfs_z(row: int, numbers: int, state: int) -> int:
    """Beyond the tokens that are left, up to the vocabulary's size, the curve is 0."""
    z, count, vocab = read_f64(numbers), word(row, COUNT), word(row, VOCAB)
    if z >= 1.0 or vocab < 3:
        return ALL
    if word(row, MORE_BEYOND) != 0:
        return UNKNOWN
    probs, bends = word(row, ROOM), min(count, vocab - 2)
    for i in range(0, count + 2, 8):
        y = floats(word(row, VALUES) + 8 * i, count - i) - fill(f64x8, number(row, MASS))
        store(probs + 8 * i, exp(y))
    whole, passed = 0.0, 0.0
    for i in range(bends):
        whole += bend(probs + 8 * i)
    for i in range(bends):
        passed += bend(probs + 8 * i)
        if passed > (z + NEAR) * whole:
            return i + 1
    return min(count, vocab - 1)
