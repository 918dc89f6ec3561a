"""Keys and values of one text as torch tensors, for every model that runs in torch.

Per layer one buffer of each, longer than the text, so that most tokens are written in place. It
knows neither which text it holds nor who else knows a part of it: memories do.
"""
from __future__ import annotations

from torch import Tensor

from unspool.core.prefix import BLOCK
from unspool.core.sockets import Lease


class TorchStore:
    """Buffers [room, kv_heads, size] by layer, made at a layer's first tokens and like them.

    `reserve`: tokens to make room for at once. A text that has more of them, as every text where it
    is 0, gets room for half as many again, so that growing copies seldom.
    """

    def __init__(self, reserve: int = 0) -> None:
        self.reserve = reserve
        self.keys: dict[int, Tensor] = {}
        self.values: dict[int, Tensor] = {}

    @property
    def nbytes(self) -> int:
        return sum(b.nbytes for buffers in (self.keys, self.values) for b in buffers.values())

    def keep(
        self, layer: int, length: int, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Put `keys` and `values`, [tokens, kv_heads, size], after the first `length` tokens.

        Returns those of all `length` + tokens, as views: what comes next may write over them.
        """
        end = length + len(keys)
        for buffers, new in ((self.keys, keys), (self.values, values)):
            buffer = buffers.get(layer)
            if buffer is None or len(buffer) < end:
                buffers[layer] = self._room(new, end)
                if buffer is not None:
                    buffers[layer][:length] = buffer[:length]
            buffers[layer][length:end] = new
        return self.keys[layer][:end], self.values[layer][:end]

    def copy(self, length: int) -> TorchStore:
        """A store of its own that holds the first `length` tokens, and has room for the next."""
        copied = TorchStore(self.reserve)
        for mine, theirs in ((copied.keys, self.keys), (copied.values, self.values)):
            for layer, buffer in theirs.items():
                mine[layer] = self._room(buffer, length + 1)
                mine[layer][:length] = buffer[:length]
        return copied

    def _room(self, like: Tensor, tokens: int) -> Tensor:
        room = self.reserve if tokens <= self.reserve else tokens + tokens // 2 + BLOCK
        return like.new_empty((room, *like.shape[1:]))


def store_of(lease: Lease) -> TorchStore:
    """The store of a lease, made when its first tokens are read."""
    if lease.store is None:
        lease.store = TorchStore(lease.reserve)
    store: TorchStore = lease.store
    return store
