"""The operation that adds to the logits of tokens which would complete a sequence.

Its numbers are the address of the sequences and how many words they take, int64, one sequence after
the other: how many tokens it has, what is added (the bits of a float64), and its tokens.
"""
from __future__ import annotations

from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.simd import read_f64, read_i64
from unspool.kernels.shaping.row import LENGTH, SIGNATURE, logit, put, word, written
from unspool.kernels.shaping.tokens import exists


@inner
def stands_at(row: int, first: int, tokens: int, count: int) -> bool:
    """Whether these tokens stand in the text from place `first` on."""
    if first < 0 or first + count > word(row, LENGTH):
        return False
    i = 0
    while i < count and read_i64(tokens + 8 * i) == written(row, first + i):
        i += 1
    return i == count


@kernel(SIGNATURE)
def sequence_bias(row: int, numbers: int, state: int) -> int:
    at = read_i64(numbers)
    end = at + 8 * read_i64(numbers + 8)
    while at < end:
        size, tokens = read_i64(at), at + 16
        first, last = word(row, LENGTH) - size + 1, read_i64(tokens + 8 * (size - 1))
        if exists(row, last) and stands_at(row, first, tokens, size - 1):
            put(row, last, logit(row, last) + read_f64(at + 8))
        at = tokens + 8 * size
    return 0
