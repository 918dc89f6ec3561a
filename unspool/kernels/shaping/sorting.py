"""A LIST in order again, after an operation changed its values. See `row`."""
from __future__ import annotations

import numpy as np

from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.simd import read_f64, read_i64, write_f64, write_i64
from unspool.kernels.shaping.row import (
    COUNT,
    IDS,
    SIGNATURE,
    VALUES,
    set_word,
    word,
)


@inner
def in_order(row: int) -> bool:
    values, ids = word(row, VALUES), word(row, IDS)
    for i in range(1, word(row, COUNT)):
        one, other = read_f64(values + 8 * i - 8), read_f64(values + 8 * i)
        if other > one or (other == one and read_i64(ids + 8 * i) < read_i64(ids + 8 * i - 8)):
            return False
    return True


@inner
def sift(row: int, root: int, size: int) -> None:
    """One step of a heap sort: the worst token on top."""
    values, ids = word(row, VALUES), word(row, IDS)
    value, token = read_f64(values + 8 * root), read_i64(ids + 8 * root)
    while 2 * root + 1 < size:
        below = 2 * root + 1
        if below + 1 < size and worse(row, below + 1, below):
            below += 1
        low, other = read_f64(values + 8 * below), read_i64(ids + 8 * below)
        if low > value or (low == value and other < token):
            break
        write_f64(values + 8 * root, low)
        write_i64(ids + 8 * root, other)
        root = below
    write_f64(values + 8 * root, value)
    write_i64(ids + 8 * root, token)


@inner
def worse(row: int, i: int, j: int) -> bool:
    """Whether place `i` of a LIST comes after place `j`."""
    values, ids = word(row, VALUES), word(row, IDS)
    one, other = read_f64(values + 8 * i), read_f64(values + 8 * j)
    return one < other or (one == other and read_i64(ids + 8 * i) > read_i64(ids + 8 * j))


@kernel(SIGNATURE)
def sort_list(row: int, unused: int, unused_too: int) -> int:
    """Put a LIST in order again, and leave out what is no longer finite."""
    values, ids, count = word(row, VALUES), word(row, IDS), word(row, COUNT)
    if not in_order(row):
        for root in range(count // 2 - 1, -1, -1):
            sift(row, root, count)
        for last in range(count - 1, 0, -1):
            value, token = read_f64(values + 8 * last), read_i64(ids + 8 * last)
            write_f64(values + 8 * last, read_f64(values))
            write_i64(ids + 8 * last, read_i64(ids))
            write_f64(values, value)
            write_i64(ids, token)
            sift(row, 0, last)
    while count > 0 and read_f64(values + 8 * count - 8) == -np.inf:
        count -= 1
    set_word(row, COUNT, count)
    return 0
