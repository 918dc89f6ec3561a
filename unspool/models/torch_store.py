"""Keys and values of one text as torch tensors, for every model that runs in torch.

A text is one or more parts that follow one another. A part has, per layer, a buffer of each, longer
than the text, so that most tokens are written in place. Texts that parted hold the same parts, and
each writes into one of its own. It knows neither which text it holds nor who else knows a part of
it: memories do.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from weakref import WeakSet

import torch
from torch import Tensor

from unspool.core.prefix import BLOCK
from unspool.core.sockets import Lease


@dataclass(slots=True, eq=False)
class Part:
    """The tokens of a text from `start`, the first of a block, on; in buffers [room, ...].

    Where its text has a later part, only the tokens before that one's first count.
    """

    start: int
    keys: dict[int, Tensor] = field(default_factory=dict)  # by layer [room, kv_heads, size]
    values: dict[int, Tensor] = field(default_factory=dict)
    states: Tensor | None = None  # [room, width]
    holders: WeakSet[TorchStore] = field(default_factory=WeakSet)

    @property
    def nbytes(self) -> int:
        kept = [*self.keys.values(), *self.values.values()]
        return sum(b.nbytes for b in kept) + (0 if self.states is None else self.states.nbytes)


class TorchStore:
    """Buffers are made at a layer's first tokens, and like them.

    `reserve`: tokens to make room for at once. A text that has more of them, as every text where it
    is 0, gets room for half as many again as its last part has, so that growing copies seldom.
    `taken`: bytes of all buffers that it has ever made. `stated`: how many tokens have their hidden
    states kept.
    """

    def __init__(self, reserve: int = 0) -> None:
        self.reserve = reserve
        self.parts: list[Part] = []
        self.stated = self.taken = 0

    @property
    def nbytes(self) -> int:
        """Its share of the parts that it holds: of a part with three holders a third."""
        return round(sum(part.nbytes / len(part.holders) for part in self.parts))

    def keep(
        self, layer: int, length: int, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Put `keys` and `values`, [tokens, kv_heads, size], after the first `length` tokens.

        Returns those of all `length` + tokens, as `read` does.
        """
        part = self._own(length)
        for buffers, new in ((part.keys, keys), (part.values, values)):
            buffers[layer] = self._put(part, buffers.get(layer), length, new)
        self.stated = min(self.stated, length)
        return self.read(layer, length + len(keys))

    def read(self, layer: int, upto: int) -> tuple[Tensor, Tensor]:
        """Keys and values of the first `upto` tokens: views of a text that has one part, which what
        comes next may write over, else copies.
        """
        pieces = self._pieces(upto)
        keys = [part.keys[layer][:count] for part, count in pieces]
        values = [part.values[layer][:count] for part, count in pieces]
        return joined(keys), joined(values)

    def share(self, length: int) -> TorchStore:
        """A text that begins with the first `length` tokens, in the same parts."""
        text = TorchStore(self.reserve)
        text.parts = [part for part in self.parts if part.start < length]
        for part in text.parts:
            part.holders.add(text)
        text.stated = min(self.stated, length)
        return text

    def free(self) -> None:
        """Let go of all parts; twice is once."""
        while self.parts:
            self._drop()
        self.stated = 0

    def put_states(self, start: int, rows: Tensor) -> None:
        """Keep the hidden states [tokens, width] of the tokens from `start` on, just written.

        Raises ValueError where those of earlier tokens are missing.
        """
        if start > self.stated:
            raise ValueError(f"hidden states from token {start} on, but only {self.stated} before")
        part = self._own(start)
        part.states = self._put(part, part.states, start, rows)
        self.stated = start + len(rows)

    def states(self, upto: int) -> Tensor:
        """[upto, width]: the hidden states of the first tokens, a view or a copy as in `read`.

        Raises ValueError where some of them are not kept.
        """
        if not 0 < upto <= self.stated:
            raise ValueError(f"hidden states of {upto} tokens, but {self.stated} are kept")
        pieces = self._pieces(upto)
        return joined([part.states[:count] for part, count in pieces if part.states is not None])

    def _pieces(self, upto: int) -> list[tuple[Part, int]]:
        """The parts of the first `upto` tokens, with how many of them each has."""
        parts = [part for part in self.parts if part.start < upto]
        ends = [*(part.start for part in parts[1:]), upto]
        return [(part, end - part.start) for part, end in zip(parts, ends, strict=True)]

    def _own(self, length: int) -> Part:
        """The part to write into after `length` tokens, which nobody else holds.

        A new one begins at the block that is written, and copies what stands before in that block.
        """
        while self.parts and self.parts[-1].start > length:
            self._drop()
        if self.parts and len(self.parts[-1].holders) == 1:
            return self.parts[-1]
        part = Part(length - length % BLOCK)
        part.holders.add(self)
        if self.parts and length > part.start:
            self._begin(part, self.parts[-1], length)
        if self.parts and self.parts[-1].start == part.start:
            self._drop()
        self.parts.append(part)
        return part

    def _begin(self, part: Part, last: Part, length: int) -> None:
        """Copy the tokens up to `length` that stand before the ones to be written."""
        old = slice(part.start - last.start, length - last.start)
        for mine, theirs in ((part.keys, last.keys), (part.values, last.values)):
            for layer, buffer in theirs.items():
                mine[layer] = self._put(part, None, part.start, buffer[old])
        if last.states is not None:
            part.states = self._put(part, None, part.start, last.states[old])

    def _put(self, part: Part, buffer: Tensor | None, start: int, new: Tensor) -> Tensor:
        """Put `new` at token `start` into the buffer, or into a longer one."""
        at, end = start - part.start, start + len(new)
        if buffer is None or len(buffer) < end - part.start:
            count = end - part.start
            room = self.reserve - part.start if end <= self.reserve else count + count // 2 + BLOCK
            longer = new.new_empty((room, *new.shape[1:]))
            self.taken += longer.nbytes
            if buffer is not None:
                longer[:at] = buffer[:at]
            buffer = longer
        buffer[at : at + len(new)] = new
        return buffer

    def _drop(self) -> None:
        self.parts.pop().holders.discard(self)


def joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def store_of(lease: Lease) -> TorchStore:
    """The store of a lease, made when its first tokens are read."""
    if lease.store is None:
        lease.store = TorchStore(lease.reserve)
    store: TorchStore = lease.store
    return store
