"""Compiled noise is the reference's: uniform numbers bit for bit, Gumbel numbers within 1e-12."""
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unspool.kernels.machine.jit import kernel
from unspool.kernels.machine.simd import load, store
from unspool.kernels.reading import philox
from unspool.kernels.reading.noise import (
    MOST,
    as_float,
    bits,
    gumbel,
    i64x8,
    seats,
    words_at,
    words_of_32,
)

SEED, SMALL = st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1)


@kernel("void(int64, int64, int64)")
def words_in_order(place, first, out):
    a, b, c, d = words_of_32(first, place)
    store(out, a)
    store(out + 64, b)
    store(out + 128, c)
    store(out + 192, d)


@kernel("void(int64, int64, int64)")
def words_of_eight(place, tokens, out):
    store(out, as_float(words_at(load(i64x8, tokens), place)))


def words(place, tokens):
    """The reference's words, from its uniform numbers."""
    return philox.uniform(*place, np.asarray(tokens)) * 2.0**32 - 0.5


@given(SEED, SMALL, SMALL, SMALL, st.integers(0, 2**20))
def test_the_words_of_32_tokens_in_a_row(seed, choice, position, draw, block):
    place, first, out = (seed, choice, position, draw), 4 * block, np.empty(32)
    rows = seats([place])
    words_in_order(rows.ctypes.data, first, out.ctypes.data)
    assert (out == words(place, np.arange(first, first + 32))).all()


@given(SEED, SMALL, SMALL, SMALL, st.lists(st.integers(0, 2**31), min_size=8, max_size=8))
def test_the_words_of_any_eight_tokens(seed, choice, position, draw, tokens):
    place, ids, out = (seed, choice, position, draw), np.array(tokens), np.empty(8)
    rows = seats([place])
    words_of_eight(rows.ctypes.data, ids.ctypes.data, out.ctypes.data)
    assert (out == words(place, ids)).all()


@given(SEED, SMALL, SMALL, SMALL, st.lists(st.integers(0, 2**20), min_size=1, max_size=20))
def test_gumbel_noise_is_the_reference_s_with_our_logarithm(seed, choice, position, draw, tokens):
    place, ids = (seed, choice, position, draw), np.array(tokens)
    got, want = gumbel(*place, ids), philox.gumbel(*place, ids)
    assert got.shape == ids.shape and np.abs(got - want).max() < 1e-12
    assert [gumbel(*place, ids[i:i + 1])[0] for i in range(len(ids))] == got.tolist()


@given(st.integers(-2**70, 2**70), *[st.integers(-2**40, 2**40)] * 3)
def test_whole_numbers_of_any_size_are_named_by_their_low_bits(seed, choice, position, draw):
    ids = np.arange(9)
    low = seed % 2**64, choice % 2**32, position % 2**32, draw % 2**32
    assert bits((seed, choice, position, draw)) == low
    assert gumbel(seed, choice, position, draw, ids).tolist() == gumbel(*low, ids).tolist()


def test_no_number_is_larger_than_the_largest():
    assert -np.log(-np.log(1 - 2.0**-33)) < MOST
    assert gumbel(3, 0, 1, 0, np.arange(200_000)).max() < MOST
