"""Keys and values of one text in pages, for the compiled kernels.

Memory comes in slabs of several pages that grow geometrically and never move. It knows neither
which text it holds nor who else knows a part of it: memories do.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unspool.core.sockets import Lease
from unspool.kernels.layer.pages import PAGE, Layout

LINE = 64  # bytes: no block shares a cache line with another


class Pages:
    """Pages of `layout`. `reserve`: tokens to make room for at once.

    A text that outgrows its reserve, as every text where it is 0, gets as many pages again as it
    has.
    """

    def __init__(self, layout: Layout, reserve: int = 0) -> None:
        self.layout, self.reserve = layout, reserve
        self.slabs: list[NDArray[np.uint8]] = []  # [layers, heads, 2, pages, bytes of a block]
        self.count = 0  # pages
        self.addresses = np.empty((0, 4), np.int64)

    @property
    def nbytes(self) -> int:
        return self.count * self.layout.page + self.addresses.nbytes

    @property
    def table(self) -> int:
        """The address of the page table, which holds until `room` is called."""
        return int(self.addresses.ctypes.data)

    def room(self, tokens: int) -> None:
        """Make room for `tokens` in all."""
        needed = pages(tokens)
        if needed > self.count:
            wanted = max(needed, 2 * self.count) if tokens > self.reserve else pages(self.reserve)
            self._grow(wanted - self.count)

    def copy(self, length: int) -> Pages:
        """Pages of its own that hold the first `length` tokens, and have room for the next."""
        copied = Pages(self.layout, self.reserve)
        copied.room(length + 1)
        to, done, end = copied.slabs[0], 0, pages(length)
        for slab in self.slabs:
            count = min(slab.shape[3], end - done)
            to[..., done : done + count, :] = slab[..., :count, :]
            done += count
        return copied

    def _grow(self, count: int) -> None:
        layout = self.layout
        memory = np.empty(count * layout.page + LINE, np.uint8)
        start = -memory.ctypes.data % LINE
        flat = memory[start : start + count * layout.page]
        slab = flat.reshape(layout.layers, layout.kv_heads, 2, count, layout.block)
        table = np.empty((self.count + count, 4), np.int64)
        table[: self.count] = self.addresses
        table[self.count :, 0] = slab.ctypes.data + layout.block * np.arange(count)
        table[self.count :, 1:] = slab.strides[:3]
        self.slabs.append(slab)
        self.count, self.addresses = self.count + count, table


def pages(tokens: int) -> int:
    return -(-tokens // PAGE)


def pages_of(lease: Lease, layout: Layout) -> Pages:
    """The pages of a lease, made when its first tokens are read."""
    if lease.store is None:
        lease.store = Pages(layout, lease.reserve)
    store: Pages = lease.store
    return store
