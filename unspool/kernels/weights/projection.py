"""The head: the projection to logits, and the facts of each row while its logits are in the cache.

One pass over the vocabulary: a unit of work is a segment of tokens, whose logits are computed for
all rows and then looked at, see `facts`.
"""
from __future__ import annotations

from functools import cache

from unspool.kernels.machine.jit import Kernel, kernel
from unspool.kernels.machine.simd import read_i64
from unspool.kernels.reading.facts import RECORD, SEGMENT, TABLE, row_facts, segment_facts
from unspool.kernels.weights import matmul
from unspool.kernels.weights.matmul import OPERATION, ROWS, multiply

# Words of both operations, after those of the product.
VOCAB, SEGMENTS, RECORDS, TABLES = range(matmul.WORDS, matmul.WORDS + 4)
WORDS = matmul.WORDS + 4
UNITS = SEGMENT // ROWS  # of the product, in a segment


@cache
def projection(format: int, form: int) -> Kernel:
    """Logits and the records of their segments. A unit is a segment, for every row."""

    @kernel(OPERATION, name=f"project_{format}_{form}")
    def operation(args: int, step: int, first: int, last: int, scratch: int) -> None:
        vocab, segments = read_i64(args + 8 * VOCAB), read_i64(args + 8 * SEGMENTS)
        units = (vocab + ROWS - 1) // ROWS
        rows = read_i64(step + 8 * read_i64(args + 8 * matmul.COUNT))
        for segment in range(first, last):
            begin = SEGMENT * segment
            end = min(UNITS * (segment + 1), units)
            multiply(format, form, args, step, UNITS * segment, end)
            for row in range(rows):
                logits = read_i64(args + 8 * matmul.OUT) + 4 * begin
                logits += row * read_i64(args + 8 * matmul.OUT_STRIDE)
                record = read_i64(args + 8 * RECORDS) + 8 * RECORD * (row * segments + segment)
                segment_facts(logits, begin, min(SEGMENT, vocab - begin), record)

    return operation


@kernel(OPERATION)
def gather_facts(args: int, step: int, first: int, last: int, scratch: int) -> None:
    """The facts of rows from those of their segments. A unit is a row."""
    segments = read_i64(args + 8 * SEGMENTS)
    for row in range(first, last):
        records = read_i64(args + 8 * RECORDS) + 8 * RECORD * segments * row
        row_facts(records, segments, read_i64(args + 8 * TABLES) + 8 * TABLE * row)
