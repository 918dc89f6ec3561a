"""Keys and values of one text, for the compiled kernels: a table of pages out of a shared pool.

A text that parts from another holds the same pages; the first that writes into one of them gets a
copy of that page. It knows neither which tokens it holds nor who else holds a page: memories know
the one, the pool counts the other.
"""
from __future__ import annotations

import weakref

import numpy as np
from numpy.typing import NDArray

from unspool.core.sockets import Lease
from unspool.kernels.layer.pages import PAGE
from unspool.models.blocks import Pool

GROWTH = 16  # pages: the most that a text takes ahead


class Pages:
    """`reserve`: tokens to make room for at once. A text that outgrows it, as every text where it
    is 0, takes as many pages again as it has taken itself, up to GROWTH.

    `taken`: bytes of all pages that it has ever taken. `stated`: how many tokens have their hidden
    states kept.
    """

    def __init__(self, pool: Pool, reserve: int = 0) -> None:
        self.pool, self.reserve = pool, reserve
        self.numbers: list[int] = []
        self.inherited = 0  # pages that it began with
        self.shared = 0  # only of its first `shared` pages may there be other holders
        self.stated = self.taken = 0
        self._point(np.empty((0, 4), np.int64))
        weakref.finalize(self, pool.dropped.append, self.numbers).atexit = False

    @property
    def nbytes(self) -> int:
        """Its part of the pages that it holds, and of their states: of a page with three holders a
        third. So all texts of a pool together have what is held, whoever forgets whom."""
        pool, size = self.pool, self.pool.layout.page
        keys = sum(size / pool.holders[page] for page in self.numbers)
        states = sum(pool.states[page].nbytes / pool.holders[page]
                     for page in self.numbers if page in pool.states) if self.stated else 0
        return round(keys + states) + self.addresses.nbytes

    def room(self, start: int, tokens: int) -> None:
        """Make room to write `tokens` tokens from `start` on, in pages that nobody else holds.

        What stands before `start` stays; what stood behind the tokens is void. The page table is
        where `table` says until this is called again.
        """
        self.stated = min(self.stated, start)
        if start // PAGE < self.shared or pages(start + tokens) > len(self.numbers):
            self._own(start, start + tokens)

    def share(self, length: int) -> Pages:
        """A text that begins with the first `length` tokens, in the same pages."""
        text = Pages(self.pool, self.reserve)
        text.numbers += self.numbers[: pages(length)]
        self.pool.hold(text.numbers)
        text.inherited = text.shared = len(text.numbers)
        self.shared = max(self.shared, text.shared)
        text.stated = min(self.stated, length)
        text._point(self.addresses[: text.shared].copy())
        return text

    def free(self) -> None:
        """Give all pages back; twice is once."""
        self.pool.give(self.numbers)
        self.numbers.clear()
        self.inherited = self.shared = self.stated = 0
        self._point(np.empty((0, 4), np.int64))

    def put_states(self, start: int, rows: NDArray[np.float32]) -> None:
        """Keep the hidden states [tokens, width] of the tokens from `start` on, just written.

        Raises ValueError where those of earlier tokens are missing.
        """
        if start > self.stated:
            raise ValueError(f"hidden states from token {start} on, but only {self.stated} before")
        self.room(start, len(rows))
        states, at = self.pool.states, 0
        while at < len(rows):
            page, token = self.numbers[(start + at) // PAGE], (start + at) % PAGE
            if page not in states:
                states[page] = np.empty((PAGE, rows.shape[1]), np.float32)
            count = min(PAGE - token, len(rows) - at)
            states[page][token : token + count] = rows[at : at + count]
            at += count
        self.stated = start + len(rows)

    def states(self, upto: int) -> NDArray[np.float32]:
        """[upto, width], a copy: the hidden states of the first tokens.

        Raises ValueError where some of them are not kept.
        """
        if not 0 < upto <= self.stated:
            raise ValueError(f"hidden states of {upto} tokens, but {self.stated} are kept")
        known = self.pool.states
        return np.concatenate([known[page] for page in self.numbers[: pages(upto)]])[:upto]

    def _own(self, start: int, end: int) -> None:
        """Give back what others hold from `start` on, and take what is missing up to `end`."""
        pool, first = self.pool, start // PAGE
        behind = self.numbers[first:]
        own = [page for page in behind if pool.holders[page] == 1]
        others = [page for page in behind if pool.holders[page] > 1]
        missing = self._wanted(end) - first - len(own)
        if missing > 0:
            last = (own or self.numbers[:first] or [-1])[-1]
            new = pool.take(missing, last)
            own += new
            self.taken += len(new) * pool.layout.page
        if start % PAGE and behind[0] in others:
            pool.copy(behind[0], own[0])
        self.numbers[first:] = own
        pool.give(others)
        self.shared = min(self.shared, first)
        self._point(pool.addresses[self.numbers])

    def _wanted(self, end: int) -> int:
        """How many pages to have for `end` tokens."""
        have, needed = len(self.numbers), pages(end)
        if end <= self.reserve:
            return pages(self.reserve)
        if needed <= have:
            return needed
        return max(needed, have + min(max(have - self.inherited, 1), GROWTH))

    def _point(self, addresses: NDArray[np.int64]) -> None:
        self.addresses, self.table = addresses, int(addresses.ctypes.data)


def pages(tokens: int) -> int:
    return -(-tokens // PAGE)


def pages_of(lease: Lease, pool: Pool) -> Pages:
    """The pages of a lease, made when its first tokens are read."""
    if lease.store is None:
        lease.store = Pages(pool, lease.reserve)
    store: Pages = lease.store
    return store
