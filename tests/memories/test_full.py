"""Full memory: every store has room for the whole context from its first token on.

That it finds the right texts is tested beside Dense, whose search it has.
"""
import torch

from unspool.core.prefix import prefix
from unspool.core.sockets import Reader
from unspool.memories import MEMORIES, Full
from unspool.models.torch_store import store_of

READER = Reader("model", "reference")
CONTEXT = 64


def read(memory, text):
    """One forward of one layer: each token's key is its id. The lease, settled."""
    lease = memory.known(READER, text)
    new = torch.tensor(text.last(text.length - lease.length)).view(-1, 1, 1)
    keys, _ = store_of(lease).keep(0, lease.length, new, -new)
    assert keys.flatten().tolist() == text.tokens()
    memory.settle(lease, text)
    return lease


def test_a_text_runs_to_the_end_of_the_context_in_one_place():
    memory, text = Full(CONTEXT), prefix([0])
    lease = read(memory, text)
    [part] = lease.store.parts
    at = part.keys[0].data_ptr(), part.values[0].data_ptr()
    assert lease.reserve == CONTEXT == len(part.keys[0]) == len(part.values[0])
    while text.length < CONTEXT:
        text = text.extend(text.length)
        assert read(memory, text) is lease
        assert (part.keys[0].data_ptr(), part.values[0].data_ptr()) == at
    assert len(memory.buffers) == 1 and lease.store.parts == [part]


def test_a_text_that_parts_gets_room_for_the_rest():
    memory, trunk = Full(CONTEXT), prefix(range(40))
    first = read(memory, trunk)
    held = memory.known(READER, trunk.extend(1))
    other = memory.known(READER, trunk.extend(2))
    assert held is first and other.length == 40
    assert other.store is not first.store and other.store.taken == 0
    memory.settle(other, trunk)
    text = trunk.extend(100)
    assert read(memory, text) is other
    part = other.store.parts[1]
    assert part.start + len(part.keys[0]) == CONTEXT
    while text.length < CONTEXT:
        text = text.extend(100)
        assert read(memory, text) is other and other.store.parts[1] is part
    assert first.store.read(0, 40)[0].flatten().tolist() == list(range(40))


def test_what_idle_texts_take_is_counted_with_their_room():
    room = 2 * CONTEXT * torch.tensor([0]).nbytes  # keys and values of one layer
    memory = Full(CONTEXT, idle_bytes=2 * room)
    texts = [prefix([i] * 20) for i in range(4)]
    leases = []
    for text in texts:
        leases.append(read(memory, text))
        assert leases[-1].store.nbytes == room
    assert list(memory.buffers.values()) == leases[1:]  # two idle ones, and the one just opened


def test_it_is_found_by_name_and_told_the_context():
    memory = MEMORIES["full"](CONTEXT)
    assert type(memory) is Full and memory.reserve == CONTEXT and Full.exact and Full.keeps
