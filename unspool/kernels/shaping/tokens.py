"""Operations on tokens that are named by their ids: int64, ascending, each once.

The first two numbers of each are the address of the ids and how many there are. Ids beyond the
vocabulary mean nothing.
"""
from __future__ import annotations

import numpy as np

from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.simd import read_f64, read_i64
from unspool.kernels.shaping.only import keep_only, place
from unspool.kernels.shaping.row import (
    COUNT,
    FORM,
    LENGTH,
    LIST,
    PROMPT,
    SIGNATURE,
    VOCAB,
    logit,
    put,
    set_word,
    word,
)

LARGEST = 3.4028234663852886e38  # the largest float32
THIRD = 16  # where the numbers begin that follow the ids


@inner
def exists(row: int, token: int) -> bool:
    return 0 <= token < word(row, VOCAB)


@inner
def remove(row: int, numbers: int) -> None:
    ids = read_i64(numbers)
    for i in range(read_i64(numbers + 8)):
        token = read_i64(ids + 8 * i)
        if exists(row, token):
            put(row, token, -np.inf)


@kernel(SIGNATURE)
def suppress(row: int, numbers: int, state: int) -> int:
    remove(row, numbers)
    return 0


@kernel(SIGNATURE)
def begin_suppress(row: int, numbers: int, state: int) -> int:
    if word(row, LENGTH) == word(row, PROMPT):
        remove(row, numbers)
    return 0


@kernel(SIGNATURE)
def min_length(row: int, numbers: int, state: int) -> int:
    """..., total."""
    if word(row, LENGTH) < read_f64(numbers + THIRD):
        remove(row, numbers)
    return 0


@kernel(SIGNATURE)
def min_new_tokens(row: int, numbers: int, state: int) -> int:
    """..., n."""
    if word(row, LENGTH) - word(row, PROMPT) < read_f64(numbers + THIRD):
        remove(row, numbers)
    return 0


@kernel(SIGNATURE)
def exponential_decay(row: int, numbers: int, state: int) -> int:
    """..., start, factor."""
    beyond = word(row, LENGTH) - word(row, PROMPT) - read_f64(numbers + THIRD)
    if beyond <= 0.0:
        return 0
    growth = min(read_f64(numbers + THIRD + 8) ** beyond, LARGEST)
    ids = read_i64(numbers)
    for i in range(read_i64(numbers + 8)):
        token = read_i64(ids + 8 * i)
        if exists(row, token):
            x = logit(row, token)
            if x > -np.inf:
                put(row, token, min(x + abs(x) * (growth - 1.0), LARGEST))
    return 0


@kernel(SIGNATURE)
def allowed_ids(row: int, numbers: int, state: int) -> int:
    keep_only(row, read_i64(numbers), read_i64(numbers + 8))
    return 0


@inner
def force(row: int, numbers: int) -> None:
    """Leave these tokens, all of them equally likely, whatever became of them before."""
    ids, kept = read_i64(numbers), 0
    for i in range(read_i64(numbers + 8)):
        token = read_i64(ids + 8 * i)
        if exists(row, token):
            place(row, kept, token, 0.0)
            kept += 1
    set_word(row, FORM, LIST)
    set_word(row, COUNT, kept)


@kernel(SIGNATURE)
def forced_first(row: int, numbers: int, state: int) -> int:
    if word(row, LENGTH) == word(row, PROMPT):
        force(row, numbers)
    return 0


@kernel(SIGNATURE)
def forced_last(row: int, numbers: int, state: int) -> int:
    """..., length."""
    if word(row, LENGTH) == read_f64(numbers + THIRD) - 1.0:
        force(row, numbers)
    return 0
