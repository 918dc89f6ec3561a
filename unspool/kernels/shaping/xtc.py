"""The cut that removes the best tokens: exclude top choices."""
from __future__ import annotations

from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.lanes import lane
from unspool.kernels.machine.simd import read_f64, read_i64, write_i64, zero
from unspool.kernels.reading.facts import log_of
from unspool.kernels.reading.noise import STEP, as_float, i64x8, words_at
from unspool.kernels.reading.philox import USES
from unspool.kernels.shaping.cuts import NEAR, reaching
from unspool.kernels.shaping.row import (
    ALL,
    COUNT,
    DRAW,
    FIRST,
    MASS,
    MORE_BEYOND,
    ROOM,
    SEED,
    SIGNATURE,
    UNKNOWN,
    number,
    set_word,
    token_at,
    word,
)

OWN_DRAW = USES["xtc"] - USES["pick"]  # a row's place names the draw of its pick


@inner
def chance(row: int) -> float:
    """A uniform number of this row and step alone."""
    place = word(row, ROOM)
    for i in range(4):
        write_i64(place + 8 * i, word(row, SEED + i))
    write_i64(place + 24, word(row, DRAW) + OWN_DRAW)
    return (lane(as_float(words_at(zero(i64x8), place)), 0) + 0.5) * STEP


@inner
def protected(row: int, count: int, ids: int, size: int) -> bool:
    """Whether one of `size` ids is among the first `count` tokens."""
    for i in range(count):
        for j in range(size):
            if token_at(row, i) == read_i64(ids + 8 * j):
                return True
    return False


@kernel(SIGNATURE)
def xtc(row: int, numbers: int, state: int) -> int:
    """probability, threshold; then the address and the count of the ids that are never removed."""
    probability, threshold = read_f64(numbers), read_f64(numbers + 8)
    if probability <= 0.0 or chance(row) > probability:
        return ALL
    count = word(row, COUNT)
    if threshold > 0.0:
        likely = reaching(row, number(row, MASS) + log_of(threshold) - NEAR)
        if likely == UNKNOWN and word(row, MORE_BEYOND) != 0:
            return UNKNOWN
        count = count if likely == UNKNOWN else likely
    elif word(row, MORE_BEYOND) != 0:
        return UNKNOWN
    if not protected(row, count - 1, read_i64(numbers + 16), read_i64(numbers + 24)):
        set_word(row, FIRST, count - 1)
    return ALL
