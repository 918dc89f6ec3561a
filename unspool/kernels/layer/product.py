"""The small matrix product inside attention: query heads by keys, weights by values.

Both are out += left · right where a few rows of floats meet many stored numbers, which are read
once for all rows of a tile.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from unspool.kernels.layer.pages import bytes_of, read_vectors
from unspool.kernels.machine.jit import inner
from unspool.kernels.machine.registers import add_floats
from unspool.kernels.machine.rows import columns_of, load_sums, rows_of, store_sums


class Product(NamedTuple):
    """out [height, width] += left [height, depth] · right [depth, width], all at addresses.

    A `..._step` is the bytes from row to row. `height`, `width` are multiples of the tile's.
    """

    out: int
    out_step: int
    left: int
    left_step: int
    right: int
    right_step: int
    height: int
    width: int
    depth: int


@inner
def add_product(kind: Any, tile: Any, p: Product) -> None:
    """`kind`: of the stored numbers on the right. Each sum is taken in the order of depth."""
    breadth = 8 * columns_of(tile) * bytes_of(kind)
    for column in range(p.width // (8 * columns_of(tile))):
        for row in range(0, p.height, rows_of(tile)):
            out = p.out + row * p.out_step + 32 * columns_of(tile) * column
            left, right = p.left + row * p.left_step, p.right + breadth * column
            sums = load_sums(tile, out, p.out_step)
            for _ in range(p.depth):
                vectors = read_vectors(kind, tile, right)
                sums = add_floats(vectors, left, p.left_step, sums)
                left += 4
                right += p.right_step
            store_sums(tile, out, p.out_step, sums)
