"""Operations on one row of activations at a time: norm, gate, and the form the next product wants.

Each ends by encoding its row, see `activations`. The words that name where it goes are common.
"""
from __future__ import annotations

from unspool.kernels.layer.norm import rms_norm
from unspool.kernels.layer.step import CHOSEN
from unspool.kernels.layer.swiglu import swiglu
from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.simd import read_i64
from unspool.kernels.machine.words import fraction
from unspool.kernels.weights.activations import encode

OPERATION = "void(int64, int64, int64, int64, int64)"

# Words of all: the row and its size in floats, then the form and where the codes go.
IN, IN_STRIDE, SIZE, FORM, CODES, C_STRIDE, SCALES, SUMS, S_STRIDE = range(9)
WEIGHT, EPS, GATHER = 9, 10, 11  # of norm: GATHER 1: unit i is row CHOSEN[i] of the forward
PARTS = 9  # of gate: units of a row; its input is [gate | up], each SIZE floats
WORDS = 12


@kernel(OPERATION)
def norm(args: int, step: int, first: int, last: int, scratch: int) -> None:
    """RMS norm. A unit is a row."""
    for unit in range(first, last):
        row = unit
        if read_i64(args + 8 * GATHER) != 0:
            row = read_i64(read_i64(step + 8 * CHOSEN) + 8 * unit)
        x = read_i64(args + 8 * IN) + row * read_i64(args + 8 * IN_STRIDE)
        size = read_i64(args + 8 * SIZE)
        rms_norm(x, read_i64(args + 8 * WEIGHT), scratch, size, fraction(args + 8 * EPS))
        finish(args, unit, 0, scratch, size)


@kernel(OPERATION)
def gate(args: int, step: int, first: int, last: int, scratch: int) -> None:
    """SwiGLU. A unit is one of PARTS equal parts of a row."""
    parts, whole = read_i64(args + 8 * PARTS), read_i64(args + 8 * SIZE)
    size = whole // parts
    for unit in range(first, last):
        row, begin = unit // parts, unit % parts * size
        at = read_i64(args + 8 * IN) + row * read_i64(args + 8 * IN_STRIDE) + 4 * begin
        swiglu(at, at + 4 * whole, scratch, size)
        finish(args, row, begin, scratch, size)


@kernel(OPERATION)
def copy(args: int, step: int, first: int, last: int, scratch: int) -> None:
    """Nothing but the encoding. A unit is a row."""
    for row in range(first, last):
        x = read_i64(args + 8 * IN) + row * read_i64(args + 8 * IN_STRIDE)
        finish(args, row, 0, x, read_i64(args + 8 * SIZE))


@kernel(OPERATION)
def chosen(args: int, step: int, first: int, last: int, scratch: int) -> None:
    """The encoding of the rows that want logits. A unit is a row."""
    for unit in range(first, last):
        row = read_i64(read_i64(step + 8 * CHOSEN) + 8 * unit)
        x = read_i64(args + 8 * IN) + row * read_i64(args + 8 * IN_STRIDE)
        finish(args, unit, 0, x, read_i64(args + 8 * SIZE))


@inner
def finish(args: int, row: int, begin: int, x: int, size: int) -> None:
    """Encode `size` floats at x as the columns of a row from `begin` on."""
    form = read_i64(args + 8 * FORM)
    width = 4 if form == 0 else 2 if form == 1 else 1
    codes = read_i64(args + 8 * CODES) + row * read_i64(args + 8 * C_STRIDE) + begin * width
    block = row * read_i64(args + 8 * S_STRIDE) + begin // 32 * 4
    scales, sums = read_i64(args + 8 * SCALES) + block, read_i64(args + 8 * SUMS) + block
    encode(form, x, size, codes, scales, sums)
