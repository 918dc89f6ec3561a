"""Operations that weaken or strengthen tokens that the text holds already."""
from __future__ import annotations

from numba import types

from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.simd import read_f64, read_i32, write_i32
from unspool.kernels.shaping.row import (
    COUNTS,
    LENGTH,
    PROMPT,
    SIGNATURE,
    logit,
    put,
    word,
    written,
)

i32 = types.int32
GENERATED, EVERYTHING = 0.0, 1.0  # which tokens a penalty counts


@inner
def begin_of(row: int, scope: float, last: float) -> int:
    """The first token that is counted: of what was generated or of all, the last so many (-1: any).
    """
    first, length = word(row, PROMPT) if scope == GENERATED else 0, word(row, LENGTH)
    if last >= 0.0:
        first = max(first, length - int(last))
    return first


@inner
def count_tokens(row: int, first: int, end: int) -> None:
    """Add up in COUNTS how often each token stands in the text from `first` up to `end`."""
    counts = word(row, COUNTS)
    for i in range(first, end):
        at = counts + 4 * written(row, i)
        write_i32(at, i32(read_i32(at) + i32(1)))


@inner
def take_count(row: int, token: int) -> int:
    """How often it was counted; the next answer is 0."""
    at = word(row, COUNTS) + 4 * token
    count = types.int64(read_i32(at))
    write_i32(at, i32(0))
    return count


@inner
def weaken(row: int, first: int, end: int, penalty: float) -> None:
    """Divide the positive logits of tokens in this part of the text, multiply the others."""
    count_tokens(row, first, end)
    for i in range(first, end):
        token = written(row, i)
        if take_count(row, token) > 0:
            x = logit(row, token)
            put(row, token, x / penalty if x > 0.0 else x * penalty)


@kernel(SIGNATURE)
def repetition_penalty(row: int, numbers: int, state: int) -> int:
    """penalty, scope, last."""
    first = begin_of(row, read_f64(numbers + 8), read_f64(numbers + 16))
    weaken(row, first, word(row, LENGTH), read_f64(numbers))
    return 0


@kernel(SIGNATURE)
def encoder_repetition_penalty(row: int, numbers: int, state: int) -> int:
    """penalty."""
    weaken(row, 0, word(row, PROMPT), 1.0 / read_f64(numbers))
    return 0


@kernel(SIGNATURE)
def frequency_penalty(row: int, numbers: int, state: int) -> int:
    """a, scope, last."""
    first, end = begin_of(row, read_f64(numbers + 8), read_f64(numbers + 16)), word(row, LENGTH)
    count_tokens(row, first, end)
    for i in range(first, end):
        token = written(row, i)
        count = take_count(row, token)
        if count > 0:
            put(row, token, logit(row, token) - read_f64(numbers) * count)
    return 0


@kernel(SIGNATURE)
def presence_penalty(row: int, numbers: int, state: int) -> int:
    """a, scope, last."""
    first, end = begin_of(row, read_f64(numbers + 8), read_f64(numbers + 16)), word(row, LENGTH)
    count_tokens(row, first, end)
    for i in range(first, end):
        token = written(row, i)
        if take_count(row, token) > 0:
            put(row, token, logit(row, token) - read_f64(numbers))
    return 0
