"""No memory: nothing is ever known, and a forward sees exactly the keys it was given."""
import torch

from unspool.core.prefix import prefix
from unspool.core.sockets import Reader
from unspool.memories import MEMORIES, Nothing

READER = Reader("model", "reference")


def test_nothing_is_ever_known():
    memory, text = Nothing(), prefix(range(40))
    for _ in range(3):
        lease = memory.known(READER, text)
        assert lease.length == 0
        keys, values = torch.rand(40, 1, 2), torch.rand(40, 1, 2)
        kept = lease.keep(0, keys, values)
        assert kept[0] is keys and kept[1] is values
        memory.settle(lease, text)
    memory.settle(memory.known(READER, text), None)
    memory.clear()
    assert memory.known(READER, text).length == 0


def test_leases_are_each_their_own():
    memory, text = Nothing(), prefix([1])
    assert memory.known(READER, text) is not memory.known(READER, text)


def test_it_says_that_texts_are_read_whole():
    assert MEMORIES["none"] is Nothing and Nothing.exact and not Nothing.keeps
