"""Noise: the published vectors, our own mapping of places to numbers, and that picks are fair."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unspool.kernels.reading.philox import USES, draw, gumbel, philox, uniform

# Philox4x32-10 in kat_vectors of Random123 (Salmon et al. 2011): counter, key, words
VECTORS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000",
     "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
     "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
     "d16cfe09 94fdcceb 5001e420 24126ea1"),
]
WORD = st.integers(0, 2**32 - 1)


def words(text):
    return tuple(int(word, 16) for word in text.split())


def plain(counter, key):
    """The ten rounds again, in whole numbers."""
    a, b, c, d = counter
    k, m = key
    for _ in range(10):
        x, y = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = (y >> 32) ^ b ^ k, y % 2**32, (x >> 32) ^ d ^ m, x % 2**32
        k, m = (k + 0x9E3779B9) % 2**32, (m + 0xBB67AE85) % 2**32
    return a, b, c, d


@pytest.mark.parametrize(("counter", "key", "out"), VECTORS)
def test_published_vectors(counter, key, out):
    assert tuple(map(int, philox(words(counter), words(key)))) == words(out)
    assert plain(words(counter), words(key)) == words(out)


@given(st.tuples(WORD, WORD, WORD, WORD), st.tuples(WORD, WORD))
def test_every_counter_and_key(counter, key):
    assert tuple(map(int, philox(counter, key))) == plain(counter, key)


def test_the_parts_of_a_counter_broadcast():
    got = np.stack(philox((np.arange(5), 3, 7, 9), (1, 2)))
    assert got.shape == (4, 5)
    assert [tuple(map(int, got[:, i])) for i in range(5)] == [
        plain((i, 3, 7, 9), (1, 2)) for i in range(5)]


# (seed, choice, position, draw, token): the number. A change of any of these breaks every seed.
OURS = {
    (0, 0, 0, 0, 0): 0.3990464707603678,
    (42, 0, 4, 0, 7): 0.5842827594606206,
    (42, 1, 4, 0, 7): 0.9107876749476418,
    (42, 0, 5, 0, 7): 0.15146544913295656,
    (42, 0, 4, 1, 7): 0.5410118276486173,
    (43, 0, 4, 0, 7): 0.4518811049638316,
    (2**64 - 1, 7, 8191, 8, 49151): 0.8224269951460883,
    (0x123456789ABCDEF0, 3, 17, 2, 30): 0.3995535565773025,
}


@pytest.mark.parametrize(("place", "number"), OURS.items())
def test_recorded_numbers(place, number):
    *where, token = place
    assert uniform(*where, np.array([token])) == number


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**20), st.integers(0, 2**24),
       st.integers(0, 40), st.lists(st.integers(0, 2**18), min_size=1, max_size=9))
def test_the_number_of_a_place_is_one_word_of_one_block(seed, choice, position, use, tokens):
    """Whatever tokens stand beside it, in any order and more than once."""
    got = uniform(seed, choice, position, use, np.array(tokens))
    key = seed % 2**32, seed >> 32
    blocks = [plain((token // 4, position, choice, use), key) for token in tokens]
    assert got.tolist() == [(block[token % 4] + 0.5) / 2**32
                            for block, token in zip(blocks, tokens, strict=True)]


def test_every_part_of_the_place_changes_the_number():
    tokens = np.arange(64)
    base = uniform(42, 1, 10, 0, tokens)
    others = [uniform(43, 1, 10, 0, tokens), uniform(42 + 2**32, 1, 10, 0, tokens),
              uniform(42, 2, 10, 0, tokens), uniform(42, 1, 11, 0, tokens),
              uniform(42, 1, 10, 1, tokens), uniform(42, 1, 10, 0, tokens + 1)]
    for other in others:
        assert not (base == other).any()
    assert len(set(base.tolist())) == 64


def test_uses_and_replacements_never_share_a_draw():
    draws = [draw(use, replaced) for use in USES for replaced in range(5)]
    assert len(set(draws)) == len(draws) and draw("pick") == 0


def test_numbers_lie_strictly_between_zero_and_one():
    numbers = uniform(3, 0, 1, 0, np.arange(200_000))
    assert 0 < numbers.min() < 1e-4 and 1 - 1e-4 < numbers.max() < 1
    assert abs(numbers.mean() - 0.5) < 0.003 and abs(numbers.var() - 1 / 12) < 0.001
    ends = (np.array([0, 2**32 - 1], dtype=np.uint64).astype(np.float64) + 0.5) * 2.0**-32
    assert ends[0] > 0 and ends[1] < 1
    assert np.isfinite(-np.log(-np.log(ends))).all()  # the least and the greatest Gumbel


def test_gumbel_noise_is_standard():
    noise = gumbel(5, 0, 9, 0, np.arange(200_000))
    assert abs(noise.mean() - 0.5772156649) < 0.01 and abs(noise.var() - np.pi**2 / 6) < 0.03
    assert np.isfinite(noise).all()


def chi_square(counts, p):
    expected = p * counts.sum()
    return float(((counts - expected) ** 2 / expected).sum())


def test_picks_are_drawn_from_the_row():
    """20,000 positions of one seed; chi-square with 5 degrees of freedom, p = 1e-4."""
    logits = np.array([2.0, 1.0, 0.5, 0.0, -0.3, -1.5])
    p = np.exp(logits) / np.exp(logits).sum()
    picks = [np.argmax(logits + gumbel(7, 0, t, 0, np.arange(6))) for t in range(20_000)]
    assert chi_square(np.bincount(picks, minlength=6), p) < 25.7


def test_neighbouring_positions_and_choices_are_independent():
    """Pairs of picks; chi-square with 15 degrees of freedom, p = 1e-4."""
    even = np.full(16, 1 / 16)
    pick = np.array([[np.argmax(gumbel(11, c, t, 0, np.arange(4))) for t in range(4001)]
                     for c in (0, 1)])
    assert chi_square(np.bincount(pick[0, :-1] * 4 + pick[0, 1:], minlength=16), even) < 44.3
    assert chi_square(np.bincount(pick[0] * 4 + pick[1], minlength=16), even) < 44.3


def test_a_whole_row_and_a_few_of_its_tokens_have_the_same_numbers():
    row = uniform(3, 1, 7, 0, np.arange(5000))
    few = np.array([4999, 3, 4, 5, 2048, 0])
    assert (uniform(3, 1, 7, 0, few) == row[few]).all()
    assert (uniform(3, 1, 7, 0, np.arange(1001, 3001)) == row[1001:3001]).all()
