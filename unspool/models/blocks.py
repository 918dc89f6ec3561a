"""The memory of one model for keys and values: pages by number, each held by one text or by many.

A page is PAGE tokens of all layers and heads, the block of what others call block tables. Pages
come in slabs that never move and are used again, so that texts which fork and end at every step
touch no new memory. It knows neither tokens nor which text holds a page: `pages.Pages` does.
"""
from __future__ import annotations

from bisect import bisect
from collections import deque
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from unspool.kernels.layer.pages import Layout

LINE = 64  # bytes: no block shares a cache line with another
LEAST = 4 * 2**20  # bytes of a slab: numpy asks for huge pages from here on
MOST = 64 * 2**20
PART = 8  # a new slab is this part of all that there is, between the two


class Pool:
    """Pages of `layout`. A slab has `least` to `most` bytes, more where a text asks for more.

    `holders`: by page how many texts hold it. `addresses`: the page table of all pages, int64
    [numbers, 4]. `states`: hidden states [PAGE, width] of pages whose texts keep them. Between two
    slabs stands a number that is no page, so that a run of free pages never crosses them.
    """

    def __init__(self, layout: Layout, least: int = LEAST, most: int = MOST) -> None:
        self.layout, self.least, self.most = layout, least, most
        self.slabs: list[NDArray[np.uint8]] = []  # [layers, heads, 2, pages, bytes of a block]
        self.firsts: list[int] = []  # the number of each slab's first page
        self.addresses = np.empty((0, 4), np.int64)
        self.holders: list[int] = []
        self.vacant = bytearray()  # 1 where a page is free
        self.states: dict[int, NDArray[np.float32]] = {}
        self.dropped: deque[list[int]] = deque()  # of texts that were thrown away; any thread
        self._free = self._held = 0  # pages

    @property
    def allocated(self) -> int:
        """Bytes of all slabs."""
        return sum(slab.nbytes for slab in self.slabs)

    @property
    def held(self) -> int:
        """Bytes of pages that some text holds, each counted once."""
        self.sweep()
        return self._held * self.layout.page

    @property
    def free(self) -> int:
        """Bytes of pages that may be taken."""
        self.sweep()
        return self._free * self.layout.page

    def check(self) -> None:
        """Raise AssertionError unless every page is either free or held, and counted so."""
        assert self.free + self.held == self.allocated
        assert self._free == self.vacant.count(1)
        assert self._held == sum(count > 0 for count in self.holders)
        assert not any(count and free for count, free in
                       zip(self.holders, self.vacant, strict=True))
        assert all(self.holders[page] for page in self.states)

    def take(self, count: int, after: int = -1) -> list[int]:
        """`count` pages for one holder, in a run where there is one, best that after page `after`.

        Keys of neighbouring pages lie one after the other, and so are read faster.
        """
        self.sweep()
        if count > self._free:
            self._grow(count)
        return self._run(count, after)

    def hold(self, pages: Iterable[int]) -> None:
        """One more holder for each."""
        for page in pages:
            self.holders[page] += 1

    def give(self, pages: Iterable[int]) -> None:
        """One holder less for each; pages without any are free, and their states forgotten."""
        for page in pages:
            self.holders[page] -= 1
            if not self.holders[page]:
                self.vacant[page] = 1
                self.states.pop(page, None)
                self._free, self._held = self._free + 1, self._held - 1

    def sweep(self) -> None:
        """Take back what thrown-away texts held."""
        while self.dropped:
            self.give(self.dropped.popleft())

    def view(self, page: int) -> NDArray[np.uint8]:
        """Its memory: [layers, kv_heads, keys and values, bytes of a block]."""
        slab = bisect(self.firsts, page) - 1
        return self.slabs[slab][..., page - self.firsts[slab], :]

    def copy(self, page: int, to: int) -> None:
        """Copy a page's keys, values and states."""
        self.view(to)[...] = self.view(page)
        if page in self.states:
            self.states[to] = self.states[page].copy()

    def _run(self, count: int, after: int) -> list[int]:
        """The same, of free pages. Where no run is long enough, two of half the length."""
        run = b"\1" * count
        first = after + 1
        if self.vacant[first : first + count] != run:
            first = self.vacant.find(run)
        if first < 0:
            pages = self._run(count - count // 2, after)
            return pages + self._run(count // 2, pages[-1])
        self.vacant[first : first + count] = bytes(count)
        self.holders[first : first + count] = [1] * count
        self._free, self._held = self._free - count, self._held + count
        return list(range(first, first + count))

    def _grow(self, count: int) -> None:
        """A slab of at least `count` pages."""
        layout = self.layout
        size = min(max(self.allocated // PART, self.least), self.most)
        count = max(count, -(-size // layout.page))
        memory = np.empty(count * layout.page + LINE, np.uint8)
        start = -memory.ctypes.data % LINE
        flat = memory[start : start + count * layout.page]
        slab = flat.reshape(layout.layers, layout.kv_heads, 2, count, layout.block)
        table = np.zeros((count + 1, 4), np.int64)
        table[:count, 0] = slab.ctypes.data + layout.block * np.arange(count)
        table[:count, 1:] = slab.strides[:3]
        self.slabs.append(slab)
        self.firsts.append(len(self.holders))
        self.addresses = np.concatenate((self.addresses, table))
        self.holders += [0] * (count + 1)
        self.vacant += b"\1" * count + b"\0"
        self._free += count
