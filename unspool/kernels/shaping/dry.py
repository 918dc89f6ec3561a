"""The operation DRY: what would prolong a repetition is weakened by the repetition's length.

Its breakers are int64 words in ascending order, for each how many tokens it has, and its tokens.
"""
from __future__ import annotations

from numba import types

from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.simd import read_f64, read_i32, read_i64, write_i32, write_i64
from unspool.kernels.shaping.penalties import EVERYTHING, begin_of, take_count
from unspool.kernels.shaping.row import (
    COUNTS,
    LENGTH,
    ROOM,
    SIGNATURE,
    logit,
    put,
    word,
    written,
)
from unspool.kernels.shaping.sequences import stands_at
from unspool.kernels.shaping.tokens import LARGEST, exists

i32, i64 = types.int32, types.int64


@inner
def mark(row: int, token: int, value: int) -> None:
    write_i32(word(row, COUNTS) + 4 * token, i32(value))


@inner
def mark_of(row: int, token: int) -> int:
    return i64(read_i32(word(row, COUNTS) + 4 * token))


@inner
def mark_heads(row: int, breakers: int, words: int, clear: bool) -> None:
    """Mark the first token of every breaker with the place of the first one that begins so,
    counted from 1; or take the marks away."""
    at = i64(0)
    while at < words:
        head = read_i64(breakers + 8 * (at + 1))
        if exists(row, head) and (clear or mark_of(row, head) == 0):
            mark(row, head, i64(0) if clear else at + 1)
        at += 1 + read_i64(breakers + 8 * at)


@inner
def longest_at(row: int, i: int, breakers: int, words: int) -> int:
    """The tokens of the longest breaker at place `i` of the text; 0 if none is there."""
    longest, at = i64(0), mark_of(row, written(row, i)) - 1
    if at < 0:
        return longest
    while at < words and read_i64(breakers + 8 * (at + 1)) == written(row, i):
        size = read_i64(breakers + 8 * at)
        if size > longest and stands_at(row, i, breakers + 8 * (at + 1), size):
            longest = size
        at += 1 + size
    return longest


@inner
def behind_breaker(row: int, first: int, breakers: int, words: int) -> int:
    """How many tokens stand behind the breaker that begins last; all from `first` on without one.
    """
    length = word(row, LENGTH)
    for i in range(length - 1, first - 1, -1):
        longest = longest_at(row, i, breakers, words)
        if longest > 0:
            return length - i - longest
    return length - first


@inner
def match_ends(row: int, count: int, room: int) -> None:
    """Of the last `count` tokens: for each place how many tokens before it are the same as at the
    text's end. `room[k]` is that of the place `k` tokens before the end (Z-function)."""
    last = word(row, LENGTH) - 1
    begin, end = 0, 0  # the match that reaches furthest back
    for k in range(1, count):
        same = i64(0)
        if k < end:
            same = min(read_i64(room + 8 * (k - begin)), end - k)
        while k + same < count and written(row, last - same) == written(row, last - k - same):
            same += 1
        if k + same > end:
            begin, end = k, k + same
        write_i64(room + 8 * k, same)


@inner
def unmark_breakers(row: int, breakers: int, words: int) -> None:
    """Take the marks off breakers of one token."""
    at = i64(0)
    while at < words:
        size, head = read_i64(breakers + 8 * at), read_i64(breakers + 8 * (at + 1))
        if size == 1 and exists(row, head):
            mark(row, head, i64(0))
        at += 1 + size


@kernel(SIGNATURE)
def dry(row: int, numbers: int, state: int) -> int:
    """Address of the breakers, their words, multiplier, base, allowed length, last, and how many
    repeated tokens beyond the allowed length count at most."""
    breakers, words = read_i64(numbers), read_i64(numbers + 8)
    multiplier, base = read_f64(numbers + 16), read_f64(numbers + 24)
    allowed, most = read_f64(numbers + 32), read_f64(numbers + 48)
    length, room = word(row, LENGTH), word(row, ROOM)
    first = begin_of(row, EVERYTHING, read_f64(numbers + 40))
    mark_heads(row, breakers, words, False)
    limit = behind_breaker(row, first, breakers, words)
    mark_heads(row, breakers, words, True)
    match_ends(row, length - first, room)
    for k in range(1, length - first):
        token, same = written(row, length - k), min(read_i64(room + 8 * k), limit)
        if same >= allowed:
            mark(row, token, max(mark_of(row, token), same + 1))
    unmark_breakers(row, breakers, words)
    for k in range(1, length - first):
        token = written(row, length - k)
        same = take_count(row, token) - 1
        if same >= 0:
            penalty = multiplier * base ** min(same - allowed, most)
            put(row, token, logit(row, token) - min(penalty, LARGEST))
    return 0
