"""Attention of queries over keys and values in pages, query heads sharing key heads in groups.

The keys of a text are cut into segments of SEGMENT at fixed positions. Inside a segment: scores,
the largest, exponentials, then the sum of values. From segment to segment the sums are brought to
a common largest score and added in order (online softmax, arXiv:1805.02867). So a result depends,
bit for bit, on the query and its keys alone, and a long text can be shared out by segments:
`attend` leaves each segment's state in a slot, and `merge` adds the slots by the same function.
"""
from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from numba import types

from unspool.kernels.layer.exp import exp_f32
from unspool.kernels.layer.pages import INT8, PAGE, block_at, bytes_of, padded, stored
from unspool.kernels.layer.product import Product, add_product
from unspool.kernels.layer.states import (
    NOTHING,
    Sizes,
    add_state,
    clear,
    finish,
    finite,
    state_floats,
)
from unspool.kernels.layer.step import ATTENDED, MASKS, MERGES, POSITIONS, QUERIES, TABLES
from unspool.kernels.machine.cpu import registers
from unspool.kernels.machine.jit import Kernel, inner, kernel
from unspool.kernels.machine.lanes import choose, counted, larger, largest, total
from unspool.kernels.machine.rows import tile_of
from unspool.kernels.machine.simd import (
    f32x8,
    fill,
    i32x8,
    load,
    read_i8,
    read_i64,
    store,
    write_f32,
    zero,
)
from unspool.kernels.machine.words import fraction

f32, i32 = types.float32, types.int32

OPERATION = "void(int64, int64, int64, int64, int64)"
SEGMENT = 256  # keys

# Words of both operations.
ROWS, STRIDE = 0, 1  # projected rows, queries first; bytes from row to row
OUT, OUT_STRIDE = 2, 3  # rows of heads * size floats
SLOTS = 4  # address of slots * slot_bytes(...)
LAYER, GROUP, SIZE, KV_HEADS = 5, 6, 7, 8
WINDOW = 9  # the most keys that a query sees; 0: all up to itself
SCALE = 10  # of the scores, a fraction
WORDS = 11


class Query(NamedTuple):
    """One row at one key head: it sees keys `lowest` .. `end` - 1, of them those in `mask`."""

    q: int
    table: int
    layer: int
    head: int
    lowest: int
    end: int
    mask: int
    scale: float


def slot_bytes(group: int, size: int, kv_heads: int) -> int:
    """Of one slot."""
    return 4 * kv_heads * group * state_floats(size)


def scratch_bytes(group: int, size: int) -> int:
    """What `attend` needs of a thread's scratch."""
    return 4 * group * (SEGMENT + 2 * state_floats(size))


def attend(group: int, size: int, kind: int) -> Kernel:
    """The operation for `group` query heads a key head and one kind of pages.

    A unit is an entry of QUERIES at a key head: unit = head * ATTENDED + entry.
    """
    rows = next(n for n in (4, 3, 2, 7, 5, 1) if group % n == 0)
    vectors = padded(size) // 8
    most = max(registers() * 3 // 4 // rows, 1)
    columns = max(n for n in range(1, most + 1) if vectors % n == 0)
    return _attend(rows, 2 if rows <= 4 else 1, columns, kind)


@cache
def _attend(rows: int, by_keys: int, by_values: int, kind: int) -> Kernel:
    @kernel(OPERATION, name=f"attend_{rows}_{by_keys}_{by_values}_{kind}")
    def attend(args: int, step: int, first: int, last: int, scratch: int) -> None:
        what, scaled = stored(kind), kind == INT8
        keys, values = tile_of(rows, by_keys), tile_of(rows, by_values)
        sizes = sizes_of(args, bytes_of(what), scaled)
        slots, kv_heads = read_i64(args + 8 * SLOTS), read_i64(args + 8 * KV_HEADS)
        attended = read_i64(step + 8 * ATTENDED)
        group = sizes.group * sizes.state
        whole = scratch + 4 * SEGMENT * sizes.group
        for unit in range(first, last):
            entry = read_i64(step + 8 * QUERIES) + 32 * (unit % attended)
            row, head, slot = read_i64(entry), unit // attended, read_i64(entry + 24)
            query = query_of(args, step, sizes, row, head)
            number, end = read_i64(entry + 8), read_i64(entry + 16)
            state = slots + (slot * kv_heads + head) * group
            if slot < 0:
                state = whole + group
                number = max(number, query.lowest // SEGMENT)
                clear(sizes, whole)
            while number <= end:
                score(what, keys, sizes, query, number, scratch)
                weigh(sizes, query, number, scratch, state)
                add_values(what, values, sizes, query, number, (scratch, state))
                if slot < 0:
                    add_state(sizes, whole, state)
                number += 1
            if slot < 0:
                finish(sizes, whole, out_at(args, row, head))

    return attend


@kernel(OPERATION)
def merge(args: int, step: int, first: int, last: int, scratch: int) -> None:
    """Add up the slots of a query. A unit is an entry of MERGES at a key head: unit = entry *
    kv heads + head."""
    kv_heads = read_i64(args + 8 * KV_HEADS)
    sizes = sizes_of(args, 1, False)
    slot = kv_heads * sizes.group * sizes.state
    for unit in range(first, last):
        entry = read_i64(step + 8 * MERGES) + 24 * (unit // kv_heads)
        head = unit % kv_heads
        clear(sizes, scratch)
        at = read_i64(args + 8 * SLOTS) + head * sizes.group * sizes.state
        begin = read_i64(entry + 8)
        for i in range(begin, begin + read_i64(entry + 16)):
            add_state(sizes, scratch, at + i * slot)
        finish(sizes, scratch, out_at(args, read_i64(entry), head))


@inner
def sizes_of(args: int, width: int, scaled: bool) -> Sizes:
    """`width`: bytes of a stored number; `scaled`: with scales."""
    size = read_i64(args + 8 * SIZE)
    wide = (size + 7) & ~7
    scales = PAGE * wide * width if scaled else 0
    return Sizes(read_i64(args + 8 * GROUP), size, wide, 4 * wide + 32, scales)


@inner
def query_of(args: int, step: int, sizes: Sizes, row: int, head: int) -> Query:
    position = read_i64(read_i64(step + 8 * POSITIONS) + 8 * row)
    window = read_i64(args + 8 * WINDOW)
    lowest = max(position - window + 1, 0) if window > 0 else 0
    masks = read_i64(step + 8 * MASKS)
    q = read_i64(args + 8 * ROWS) + row * read_i64(args + 8 * STRIDE)
    return Query(
        q + 4 * head * sizes.group * sizes.size,
        read_i64(read_i64(step + 8 * TABLES) + 8 * row),
        read_i64(args + 8 * LAYER),
        head,
        lowest,
        position + 1,
        read_i64(masks + 8 * row) if masks else 0,
        fraction(args + 8 * SCALE),
    )


@inner
def out_at(args: int, row: int, head: int) -> int:
    """Where the heads of a group go."""
    start = read_i64(args + 8 * OUT) + row * read_i64(args + 8 * OUT_STRIDE)
    return start + 4 * head * read_i64(args + 8 * GROUP) * read_i64(args + 8 * SIZE)


# ── one segment ──────────────────────────────────────────────────────────────────────────────────
@inner
def span_of(query: Query, number: int) -> tuple[int, int]:
    """The keys of a segment that the query sees, as (first, end); (0, 0) for none."""
    low = max(query.lowest, number * SEGMENT)
    end = min(query.end, number * SEGMENT + SEGMENT)
    return (low, end) if low < end else (0, 0)


@inner
def score(what: Any, tile: Any, sizes: Sizes, query: Query, number: int, scores: int) -> None:
    """The scores of a segment's pages, [group, SEGMENT], with -inf where a key is not seen."""
    row, (low, last) = 4 * SEGMENT, span_of(query, number)
    nothing = fill(f32x8, NOTHING)
    for page in range(low // PAGE, (last + PAGE - 1) // PAGE):
        first = page * PAGE
        out = scores + 4 * (first - number * SEGMENT)
        keys = block_at(query.table, page, query.layer, query.head, 0)
        for at in range(out, out + sizes.group * row, row):
            store(at, zero(f32x8))
            store(at + 32, zero(f32x8))
        add_product(what, tile, Product(
            out, row, query.q, 4 * sizes.size, keys, PAGE * bytes_of(what), sizes.group, PAGE,
            sizes.size,
        ))
        for half in range(0, PAGE, 8):
            key = counted(i32x8, i32(first + half))
            above, below = key >= fill(i32x8, i32(low)), key < fill(i32x8, i32(last))
            by = fill(f32x8, query.scale)
            if sizes.scales:
                by = by * load(f32x8, keys + sizes.scales + 4 * half)
            for at in range(out + 4 * half, out + 4 * half + sizes.group * row, row):
                store(at, choose(above, choose(below, load(f32x8, at) * by, nothing), nothing))
        if query.mask:
            for key in range(max(first, low), min(first + PAGE, last)):
                if read_i8(query.mask + key) == 0:
                    for at in range(out, out + sizes.group * row, row):
                        write_f32(at + 4 * (key - first), NOTHING)


@inner
def weigh(sizes: Sizes, query: Query, number: int, scores: int, state: int) -> None:
    """Scores become weights; the state begins with their largest and the sum of the weights."""
    low, last = span_of(query, number)
    base = scores - 4 * number * SEGMENT
    for g in range(sizes.group):
        row, at = base + 4 * SEGMENT * g, state + sizes.state * g
        first, end = row + 4 * (low & -PAGE), row + 4 * ((last + PAGE - 1) & -PAGE)
        top = fill(f32x8, NOTHING)
        for i in range(first, end, 32):
            top = larger(load(f32x8, i), top)
        most = largest(top)
        less = fill(f32x8, finite(most))
        weights = zero(f32x8)
        for i in range(first, end, 32):
            weight = exp_f32(load(f32x8, i) - less)
            store(i, weight)
            weights = weights + weight
        for i in range(at, at + sizes.state, 32):
            store(i, zero(f32x8))
        write_f32(at + 4 * sizes.padded, most)
        write_f32(at + 4 * sizes.padded + 4, total(weights))


@inner
def add_values(
    what: Any, tile: Any, sizes: Sizes, query: Query, number: int, where: tuple[int, int]
) -> None:
    """Add weight * value of the keys that are seen. `where`: weights [group, SEGMENT], state."""
    row, (low, last) = 4 * SEGMENT, span_of(query, number)
    weights, step = where[0] - row * number, sizes.padded * bytes_of(what)
    for page in range(low // PAGE, (last + PAGE - 1) // PAGE):
        first = page * PAGE
        block = block_at(query.table, page, query.layer, query.head, 1)
        if sizes.scales:
            for half in range(0, PAGE, 8):
                scale = load(f32x8, block + sizes.scales + 4 * half)
                begin = weights + 4 * (first + half)
                for at in range(begin, begin + sizes.group * row, row):
                    store(at, load(f32x8, at) * scale)
        key, stop = max(first, low), min(first + PAGE, last)
        while key < stop:
            end = stop
            if query.mask:  # a run of keys that are seen
                end = key
                while end < stop and read_i8(query.mask + end) != 0:
                    end += 1
            values = block + (key - first) * step
            add_product(what, tile, Product(
                where[1], sizes.state, weights + 4 * key, row, values, step, sizes.group,
                sizes.padded, end - key,
            ))
            key = end + 1
