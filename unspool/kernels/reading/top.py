"""The likeliest tokens of finished rows of float32 logits, and ranks.

All use the facts of the row: most parts of a row hold nothing that matters, and their maxima say
so. A row is given by two int64 words, the addresses of its logits and of its records; it has no
NaN. See `facts` for records.
"""
from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.lanes import any_of, choose, counted, total
from unspool.kernels.machine.simd import (
    f32x8,
    fill,
    i32x8,
    read_f32,
    read_i32,
    read_i64,
    write_f64,
    write_i64,
    zero,
)
from unspool.kernels.reading.facts import (
    MAXIMA,
    PART,
    PARTS,
    RECORD,
    eight,
)

f32, i32, i64 = types.float32, types.int32, types.int64
LOW = 0xFFFFFFFF
DIGIT = 11
DIGITS = 2**DIGIT
SCALE = 32.0


@inner
def part_maximum(records: int, part: int) -> Any:
    record = records + 8 * RECORD * (part // PARTS)
    return read_f32(record + 8 * MAXIMA + 4 * (part % PARTS))


# ── keys: whole numbers in the order of (value, then lower id) ───────────────────────────────────
@inner
def key_of(address: int, token: int) -> int:
    """The key of the float at an address."""
    bits = i64(read_i32(address))
    if bits == -0x80000000:
        bits = 0  # -0.0 is no less than 0.0
    return ((bits ^ ((bits >> 63) & 0x7FFFFFFF)) << 32) | (LOW - token)


@inner
def token_of(key: int) -> int:
    return LOW - (key & LOW)


@inner
def push(heap: int, size: int, most: int, key: int) -> int:
    """Keep the `most` largest keys, the least of them on top. Returns how many there are."""
    if size < most:
        at = i64(size)
        while at > 0 and read_i64(heap + 8 * ((at - 1) >> 1)) > key:
            write_i64(heap + 8 * at, read_i64(heap + 8 * ((at - 1) >> 1)))
            at = (at - 1) >> 1
        write_i64(heap + 8 * at, key)
        return size + 1
    if key > read_i64(heap):
        sink(heap, size, key)
    return size


@inner
def sink(heap: int, size: int, key: int) -> None:
    """Put a key in place of the one on top."""
    at = 0
    while True:
        below = 2 * at + 1
        if below + 1 < size and read_i64(heap + 8 * below + 8) < read_i64(heap + 8 * below):
            below += 1
        if below >= size or read_i64(heap + 8 * below) >= key:
            break
        write_i64(heap + 8 * at, read_i64(heap + 8 * below))
        at = below
    write_i64(heap + 8 * at, key)


@inner
def sort(heap: int, size: int) -> None:
    """Turn a heap into a list, largest key first."""
    for left in range(size - 1, 0, -1):
        least = read_i64(heap)
        sink(heap, left, read_i64(heap + 8 * left))
        write_i64(heap + 8 * left, least)


@inner
def collect(row: int, vocab: int, most: int, heap: int) -> None:
    """The `most` largest keys of a row, sorted. `heap` has room for them."""
    logits, records = read_i64(row), read_i64(row + 8)
    parts, size = -(-vocab // PART), i64(0)  # a literal 0 would compile `push` once more
    if parts >= most:  # so many tokens are as large as the least of the largest maxima
        for part in range(parts):
            record = records + 8 * RECORD * (part // PARTS)
            size = push(heap, size, most,
                        key_of(record + 8 * MAXIMA + 4 * (part % PARTS), part))
    least = part_maximum(records, token_of(read_i64(heap))) if size else f32(-np.inf)
    size = i64(0)
    for part in range(parts):
        if part_maximum(records, part) < least:
            continue
        for first in range(PART * part, min(PART * part + PART, vocab), 8):
            if any_of(eight(logits + 4 * first, vocab - first) >= fill(f32x8, least)):
                for token in range(first, min(first + 8, vocab)):
                    if read_f32(logits + 4 * token) >= least:
                        size = push(heap, size, most, key_of(logits + 4 * token, token))
                if size == most:
                    least = read_f32(logits + 4 * token_of(read_i64(heap)))
    sort(heap, size)


@kernel("void(int64, int64, int64, int64, int64, int64)")
def top_of_rows(rows: int, count: int, vocab: int, most: int, ids: int, values: int) -> None:
    """The `most` likeliest tokens of `count` rows, best first, equals by the lower id; `most` is
    at most `vocab`. `ids`: int64 [count, most]; `values`: float64 [count, most]."""
    for r in range(count):
        out, row = ids + 8 * most * r, rows + 16 * r
        collect(row, vocab, most, out)
        for i in range(most):
            token = token_of(read_i64(out + 8 * i))
            write_i64(out + 8 * i, token)
            write_f64(values + 8 * (most * r + i), read_f32(read_i64(row) + 4 * token))


# ── longer lists: what is large enough is collected and sorted ───────────────────────────────────
@inner
def bound_of(row: int, vocab: int, most: int, counts: int) -> Any:
    """A value that `most` tokens reach, and few others: tokens are counted by how far they lie
    below the largest, in steps of 1 / SCALE. `counts`: room for DIGITS words."""
    logits, records = read_i64(row), read_i64(row + 8)
    peak = f32(-np.inf)
    for part in range(-(-vocab // PART)):
        peak = max(peak, part_maximum(records, part))
    for step in range(DIGITS):
        write_i64(counts + 8 * step, 0)
    for token in range(vocab):
        gap = (peak - read_f32(logits + 4 * token)) * f32(SCALE)
        at = counts + 8 * (i64(gap) if gap < f32(DIGITS - 1) else DIGITS - 1)
        write_i64(at, read_i64(at) + 1)
    found = 0
    for step in range(DIGITS - 1):
        found += read_i64(counts + 8 * step)
        if found >= most:
            return peak - f32((step + 2) / SCALE)  # a step more than rounding could ask for
    return f32(-np.inf)


@inner
def scatter(words: int, to: int, count: int, shift: int, places: int) -> None:
    """Sort words by DIGIT bits, equal ones in the order they have. `places`: room for DIGITS."""
    for digit in range(DIGITS):
        write_i64(places + 8 * digit, 0)
    for i in range(count):
        place = places + 8 * ((read_i64(words + 8 * i) >> shift) & (DIGITS - 1))
        write_i64(place, read_i64(place) + 1)
    before = 0
    for digit in range(DIGITS):
        own = read_i64(places + 8 * digit)
        write_i64(places + 8 * digit, before)
        before += own
    for i in range(count):
        word = read_i64(words + 8 * i)
        place = places + 8 * ((word >> shift) & (DIGITS - 1))
        at = read_i64(place)
        write_i64(to + 8 * at, word)
        write_i64(place, at + 1)


@inner
def sort_row(row: int, vocab: int, most: int, room: int) -> int:
    """The `most` likeliest tokens in the lower halves of words in order; where those lie."""
    one, two, places = room, room + 8 * vocab, room + 16 * vocab
    logits, bound, count = read_i64(row), bound_of(row, vocab, most, places), 0
    for token in range(vocab):
        if read_f32(logits + 4 * token) >= bound:
            value = key_of(logits + 4 * token, token) >> 32
            write_i64(one + 8 * count, ((0x7FFFFFFF - value) << 32) | token)
            count += 1
    for start in range(0, 32, DIGIT):
        scatter(one, two, count, 32 + start, places)
        one, two = two, one
    return one


@kernel("void(int64, int64, int64, int64, int64, int64, int64)")
def sorted_rows(rows: int, count: int, vocab: int, most: int, room: int, ids: int,
                values: int) -> None:
    """What `top_of_rows` gives, by a radix sort. `room`: 2 * vocab + DIGITS words."""
    for r in range(count):
        row, at = rows + 16 * r, most * r
        words = sort_row(row, vocab, most, room)
        for i in range(most):
            token = read_i64(words + 8 * i) & LOW
            write_i64(ids + 8 * (at + i), token)
            write_f64(values + 8 * (at + i), read_f32(read_i64(row) + 4 * token))


# ── ranks ────────────────────────────────────────────────────────────────────────────────────────
@inner
def rank_of(row: int, vocab: int, token: int) -> int:
    """1 for the likeliest token; of equal ones the lower id comes first."""
    logits, records = read_i64(row), read_i64(row + 8)
    value = read_f32(logits + 4 * token)
    bound, rank = fill(f32x8, value), 1
    for part in range(-(-vocab // PART)):
        if part_maximum(records, part) < value:
            continue
        likelier = zero(i32x8)
        for first in range(PART * part, min(PART * part + PART, vocab), 8):
            x = eight(logits + 4 * first, vocab - first)
            one, none = fill(i32x8, i32(1)), zero(i32x8)
            earlier = fill(i32x8, i32(token)) > counted(i32x8, i32(first))
            likelier = likelier + choose(x > bound, one, none)
            likelier = likelier + choose(x == bound, choose(earlier, one, none), none)
        rank += total(likelier)
    return rank


@kernel("void(int64, int64, int64, int64, int64)")
def look_at_rows(rows: int, count: int, vocab: int, tokens: int, out: int) -> None:
    """The logit and the rank of one token of each row. `tokens`: int64 [count]; `out`: float64
    [count, 2]."""
    for r in range(count):
        token, row = read_i64(tokens + 8 * r), rows + 16 * r
        write_f64(out + 16 * r, read_f32(read_i64(row) + 4 * token))
        write_f64(out + 16 * r + 8, rank_of(row, vocab, token))
