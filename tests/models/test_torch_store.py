"""Keys and values in torch: growing loses nothing, a reserve is made once, a fork has a part."""
import pytest
import torch
from models_zoo import Held

from unspool.models.torch_store import TorchStore, store_of


def arrays(tokens, seed=0):
    """Keys [tokens, 2, 3] and values [tokens, 2, 5], which may differ in size."""
    noise = torch.Generator().manual_seed(seed)
    return torch.rand(tokens, 2, 3, generator=noise), torch.rand(tokens, 2, 5, generator=noise)


def fill(store, keys, values, sizes, layers=(0, 1)):
    """Keep them in chunks of `sizes` (layer 1 negated); each answer is checked."""
    at = 0
    for size in sizes:
        end = at + size
        for layer, sign in zip(layers, (1, -1), strict=False):
            got = store.keep(layer, at, sign * keys[at:end], sign * values[at:end])
            assert torch.equal(got[0], sign * keys[:end])
            assert torch.equal(got[1], sign * values[:end])
        at = end


@pytest.mark.parametrize("reserve", [0, 1, 30, 200])
@pytest.mark.parametrize("sizes", [[1] * 120, [50, 1, 69], [120], [3, 40, 77]])
def test_what_is_kept_in_parts_is_given_back_whole(sizes, reserve):
    """Also where the text outgrows what was reserved."""
    fill(TorchStore(reserve), *arrays(120), sizes)


def places(store):
    return [b.data_ptr() for part in store.parts for buffers in (part.keys, part.values)
            for b in buffers.values()]


def test_a_reserve_is_made_at_once_and_never_moves():
    store, (keys, values) = TorchStore(120), arrays(120)
    fill(store, keys, values, [1])
    at, room = places(store), store.nbytes
    assert room == 2 * (keys.nbytes + values.nbytes)  # two layers, no token more
    for end in range(2, 121):
        for layer in (0, 1):
            got = store.keep(layer, end - 1, keys[end - 1 : end], values[end - 1 : end])
            assert got[0].data_ptr() == at[layer]  # a view
        assert places(store) == at and store.nbytes == room == store.taken


def test_growing_without_a_reserve_is_seldom():
    store, (keys, values) = TorchStore(), arrays(1000)
    seen = set()
    for end in range(1, 1001):
        store.keep(0, end - 1, keys[end - 1 : end], values[end - 1 : end])
        [part] = store.parts
        seen.add(part.keys[0].shape)
        assert end <= len(part.keys[0]) <= end * 1.5 + 16
    assert len(seen) < 12


def test_a_fork_copies_what_its_block_has_before_and_no_more():
    store, (keys, values), (other, others) = TorchStore(), arrays(40), arrays(40, seed=1)
    fill(store, keys, values, [40])
    before = places(store)
    fork = store.share(25)
    assert places(fork) == before and fork.taken == 0
    fork.keep(0, 25, other[25:], others[25:])
    got = fork.keep(0, 40, keys[:1], values[:1])
    assert torch.equal(got[0], torch.cat((keys[:25], other[25:], keys[:1])))
    assert torch.equal(got[1], torch.cat((values[:25], others[25:], values[:1])))
    assert [part.start for part in fork.parts] == [0, 16] and set(fork.parts[1].keys) == {0, 1}
    assert torch.equal(fork.read(1, 25)[0], -keys[:25])
    store.keep(0, 0, other[:1], others[:1])
    assert torch.equal(fork.read(0, 25)[0], keys[:25])
    assert len(store.parts) == 1, "all of it was overwritten"


def test_forks_of_forks_have_at_most_a_part_for_each_block():
    store, (keys, values) = TorchStore(), arrays(200)
    live = [store]
    for token in range(200):
        live[-1].keep(0, token, keys[token : token + 1], values[token : token + 1])
        live.append(live[-1].share(token + 1))
    got = live[-1].read(0, 200)
    assert torch.equal(got[0], keys) and torch.equal(got[1], values)
    assert len(live[-1].parts) == 13


@pytest.mark.parametrize("reserve", [0, 64])
def test_a_fork_and_its_fork_have_room_for_the_next_tokens(reserve):
    store, (keys, values) = TorchStore(reserve), arrays(40)
    fill(store, keys, values, [40])
    for fork in (store.share(40), store.share(40).share(40)):
        fork.keep(0, 40, keys[:1], values[:1])
        assert len(fork.parts[1].keys[0]) == (64 - 32 if reserve else 8 + 8 // 2 + 16)
        at = places(fork)
        fork.keep(0, 41, keys[:1], values[:1])
        assert places(fork) == at


def test_a_shorter_text_is_written_over_what_follows_it():
    store, (keys, values), (other, others) = TorchStore(), arrays(40), arrays(2, seed=1)
    fill(store, keys, values, [40])
    got = store.keep(0, 10, other, others)
    assert torch.equal(got[0], torch.cat((keys[:10], other)))
    assert torch.equal(got[1], torch.cat((values[:10], others)))


def test_it_takes_the_number_type_of_its_keys():
    store = TorchStore(8)
    keys, values = (x.to(torch.bfloat16) for x in arrays(3))
    got = store.keep(0, 0, keys, values)
    assert got[0].dtype == got[1].dtype == store.share(2).read(0, 2)[0].dtype == torch.bfloat16
    assert store.nbytes == 8 * (2 * 3 + 2 * 5) * 2


def test_a_lease_gets_its_store_once():
    lease = Held()
    lease.reserve = 7
    store = store_of(lease)
    assert lease.store is store is store_of(lease) and store.reserve == 7 and store.nbytes == 0
