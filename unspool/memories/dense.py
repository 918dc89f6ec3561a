"""Dense memory: per text one store of keys and values, which grows with it.

It is asked which prefix it knows. A branch that goes on finds its own store, to be written on in
place; a branch that parted from a text whose store is taken gets one that shares what both begin
with. Stores that nobody holds are kept, newest first, up to a number of bytes. How one lies in
memory, and how it is shared, only the model knows, which makes it.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from unspool.core.prefix import BLOCK, Prefix, shared
from unspool.core.sockets import Reader, Store

IDLE_BYTES = 512 * 2**20
LOOK = 16  # looks are as many for each `idle_bytes` that stores take: each asks every store
LATE = 128  # so many texts are settled before one without a block of its own is given up
NEAR = 8  # buffers looked at, of those that hold the same blocks


@dataclass(slots=True, eq=False)
class Buffer:
    """A store and the lease on it. `line` is the text whose keys and values the store holds.

    `blocks`: where the index knows it, by the blocks of `line` in order. `counted`: bytes taken by
    the store that the memory has heard of.
    """

    reader: Reader
    ticket: int
    line: Prefix
    reserve: int
    length: int = 0
    held: bool = True
    touched: int = 0
    store: Store | None = None
    blocks: list[tuple[Reader, bytes]] = field(default_factory=list)
    counted: int = 0

    @property
    def nbytes(self) -> int:
        return 0 if self.store is None else self.store.nbytes


class Dense:
    """Finds the longest known prefix over all buffers of a reader.

    `idle_bytes`: what stores that nobody holds may take; whether they do is looked at whenever all
    stores have taken a sixteenth of it anew. `reserve`: tokens for which a store is to make room at
    once; 0: it grows. A text without a whole block of its own is forgotten earlier, when LATE
    others came after it: a search leaves many such, and to read one again costs less than a block.
    """

    exact = True
    keeps = True

    def __init__(self, idle_bytes: int = IDLE_BYTES, reserve: int = 0) -> None:
        self.idle_bytes, self.reserve = idle_bytes, reserve
        self.buffers: dict[int, Buffer] = {}
        self.index: dict[tuple[Reader, bytes], set[int]] = {}
        self.tickets = count()
        self.late: deque[int] = deque()
        self.clock = self.fresh = 0  # of forwards; of bytes taken since the last look

    def known(self, reader: Reader, prefix: Prefix) -> Buffer:
        best, length = None, 0
        for buffer in self.near(reader, prefix):
            same = min(shared(buffer.line, prefix), prefix.length - 1)
            if same > length:
                best, length = buffer, same
        if best is not None and not best.held and best.length - length < BLOCK:
            lease = best  # what is lost is shorter than a block
            self.unindex(lease, length // BLOCK)
        else:
            lease = Buffer(reader, next(self.tickets), prefix, self.reserve)
            if best is not None and best.store is not None:
                lease.store = best.store.share(length)
            self.buffers[lease.ticket] = lease
            if self.fresh * LOOK >= self.idle_bytes:
                self.evict()
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
                    yield from (self.buffers[t] for t in sorted(tickets)[-NEAR:])
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
        if lease.store is not None:
            self.fresh += lease.store.taken - lease.counted
            lease.counted = lease.store.taken
        node, new = prefix.at(prefix.length - prefix.length % BLOCK), []
        while node.length > BLOCK * len(lease.blocks):
            new.append((lease.reader, node.digest))
            node = node.at(node.length - BLOCK)
        for key in reversed(new):
            self.index.setdefault(key, set()).add(lease.ticket)
            lease.blocks.append(key)
        self.late.append(lease.ticket)
        if len(self.late) > LATE:
            self.tidy(self.late.popleft())

    def tidy(self, ticket: int) -> None:
        """Forget a buffer that was not touched lately and has no whole block of its own."""
        buffer = self.buffers.get(ticket)
        if buffer is None or buffer.held or not buffer.blocks:
            return
        if self.clock - buffer.touched >= LATE and len(self.index[buffer.blocks[-1]]) > 1:
            self.forget(buffer)

    def evict(self) -> None:
        """Free the buffers that were not touched for longest, those in use excepted."""
        self.fresh = 0
        idle = sorted((b for b in self.buffers.values() if not b.held), key=lambda b: -b.touched)
        before = len(idle) + 1
        while len(idle) < before:  # what was shared with a forgotten one weighs more on the rest
            before, total, kept = len(idle), 0, []
            for buffer in idle:
                total += buffer.nbytes
                if total > self.idle_bytes:
                    self.forget(buffer)
                else:
                    kept.append(buffer)
            idle = kept

    def forget(self, buffer: Buffer) -> None:
        del self.buffers[buffer.ticket]
        self.unindex(buffer, 0)
        if buffer.store is not None:
            buffer.store.free()
            buffer.store = None

    def unindex(self, buffer: Buffer, kept: int) -> None:
        """Of its blocks the first `kept` can still be found."""
        for key in buffer.blocks[kept:]:
            self.index[key].discard(buffer.ticket)
            if not self.index[key]:
                del self.index[key]
        del buffer.blocks[kept:]

    def clear(self) -> None:
        for buffer in list(self.buffers.values()):
            self.forget(buffer)
