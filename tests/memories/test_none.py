"""No memory: nothing is ever known, and every forward makes a store of its own."""
import torch

from unspool.core.prefix import prefix
from unspool.core.sockets import Reader
from unspool.memories import MEMORIES, Nothing
from unspool.models.torch_store import store_of

READER = Reader("model", "reference")


def test_nothing_is_ever_known():
    memory, text = Nothing(), prefix(range(40))
    for _ in range(3):
        lease = memory.known(READER, text)
        assert (lease.length, lease.reserve, lease.store) == (0, 0, None)
        keys, values = torch.rand(40, 1, 2), torch.rand(40, 1, 2)
        kept = store_of(lease).keep(0, lease.length, keys, values)
        assert torch.equal(kept[0], keys) and torch.equal(kept[1], values)
        store = lease.store
        memory.settle(lease, text)
        assert lease.store is None and store.nbytes == 0  # given back at once
    memory.settle(memory.known(READER, text), None)
    memory.clear()
    assert memory.known(READER, text).length == 0


def test_leases_are_each_their_own():
    memory, text = Nothing(), prefix([1])
    assert memory.known(READER, text) is not memory.known(READER, text)


def test_it_says_that_texts_are_read_whole():
    assert type(MEMORIES["none"](64)) is Nothing and Nothing.exact and not Nothing.keeps
