"""Dense memory: per text one store of keys and values, which grows with it.

It is asked which prefix it knows. A branch that goes on finds its own store, to be written on in
place; a branch that parted from a text whose store is taken gets a copy of the shared part. Stores
that nobody holds are kept, newest first, up to a number of bytes. How one lies in memory only the
model knows, which makes it.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from unspool.core.prefix import BLOCK, Prefix, shared
from unspool.core.sockets import Reader, Store

IDLE_BYTES = 512 * 2**20


@dataclass(slots=True, eq=False)
class Buffer:
    """A store and the lease on it. `line` is the text whose keys and values the store holds."""

    reader: Reader
    ticket: int
    line: Prefix
    reserve: int
    length: int = 0
    held: bool = True
    touched: int = 0
    store: Store | None = None

    @property
    def nbytes(self) -> int:
        return 0 if self.store is None else self.store.nbytes


class Dense:
    """Finds the longest known prefix over all buffers of a reader.

    `idle_bytes`: what stores that nobody holds may take. `reserve`: tokens for which a store is to
    make room at once; 0: it grows.
    """

    exact = True
    keeps = True

    def __init__(self, idle_bytes: int = IDLE_BYTES, reserve: int = 0) -> None:
        self.idle_bytes, self.reserve = idle_bytes, reserve
        self.buffers: dict[int, Buffer] = {}
        self.index: dict[tuple[Reader, bytes], set[int]] = {}
        self.tickets = count()
        self.clock = 0

    def known(self, reader: Reader, prefix: Prefix) -> Buffer:
        best, length = None, 0
        for buffer in self.near(reader, prefix):
            same = min(shared(buffer.line, prefix), prefix.length - 1)
            if same > length:
                best, length = buffer, same
        if best is not None and not best.held and best.length - length < BLOCK:
            lease = best  # what is lost is shorter than a block
        else:
            self.evict()
            lease = Buffer(reader, next(self.tickets), prefix, self.reserve)
            self.buffers[lease.ticket] = lease
            if best is not None and best.store is not None:
                lease.store = best.store.copy(length)
        lease.held, lease.length, lease.line = True, length, prefix.at(length)
        prefix.lease = lease.ticket  # drafts branch off here, and may be rejected
        return lease

    def near(self, reader: Reader, prefix: Prefix) -> Iterator[Buffer]:
        """Buffers that may know a part: by the hints on the nodes, then by the blocks' digests."""
        node: Prefix | None = prefix
        while node is not None and node.lease not in self.buffers:
            node = node.parent
        if node is not None and (hinted := self.buffers[node.lease]).reader == reader:
            yield hinted
        else:
            node = prefix.at(prefix.length - prefix.length % BLOCK)
            while node.length:
                tickets = self.index.get((reader, node.digest))
                if tickets:
                    yield from (self.buffers[t] for t in sorted(tickets))
                    return
                node = node.at(node.length - BLOCK)

    def settle(self, lease: Buffer, prefix: Prefix | None) -> None:
        lease.held = False
        if prefix is None:
            self.forget(lease)
            return
        self.clock += 1
        lease.line, lease.length, lease.touched = prefix, prefix.length, self.clock
        prefix.lease = lease.ticket
        node = prefix.at(prefix.length - prefix.length % BLOCK)
        while node.length:
            tickets = self.index.setdefault((lease.reader, node.digest), set())
            if lease.ticket in tickets:
                break
            tickets.add(lease.ticket)
            node = node.at(node.length - BLOCK)

    def evict(self) -> None:
        """Free the buffers that were not touched for longest, those in use excepted."""
        idle = sorted((b for b in self.buffers.values() if not b.held), key=lambda b: -b.touched)
        total = 0
        for buffer in idle:
            total += buffer.nbytes
            if total > self.idle_bytes:
                self.forget(buffer)

    def forget(self, buffer: Buffer) -> None:
        del self.buffers[buffer.ticket]
        for tickets in self.index.values():
            tickets.discard(buffer.ticket)
        self.index = {key: tickets for key, tickets in self.index.items() if tickets}

    def clear(self) -> None:
        self.buffers.clear()
        self.index.clear()
