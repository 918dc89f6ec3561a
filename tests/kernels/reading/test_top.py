"""The order of tokens: by value, equal ones by the lower id, whatever way they are sorted."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unspool.kernels.reading.logits import MOST, Compiled
from unspool.kernels.reading.top import SCALE

LOGITS = st.sampled_from([-np.inf, -100.0, -1.0, -0.0, 0.0, 1.0, 1.0 + 2**-23, 90.0])


def best_first(row):
    return sorted(range(len(row)), key=lambda i: (-row[i], i))


@given(arrays(np.float32, st.integers(1, 300), elements=LOGITS), st.integers(1, 300))
def test_the_likeliest_of_a_short_row(row, count):
    row[0] = 0.0
    [ids], [values] = Compiled(row[None]).top([0], count)
    assert ids.tolist() == best_first(row)[:count]
    assert values.tolist() == row[ids].tolist()


@pytest.mark.parametrize("count", [1, 2, 63, 64, MOST, MOST + 1, 2000, 4999, 5000])
@pytest.mark.parametrize("spread", [1e-3, 1.0, 30.0])
def test_few_and_many_of_a_long_row(count, spread):
    draw = np.random.default_rng(count)
    row = draw.normal(0, spread, 5000).astype(np.float32)
    row[draw.integers(0, 5000, 900)] = row[7]
    row[draw.integers(0, 5000, 900)] = -np.inf
    [ids], _ = Compiled(row[None]).top([0], count)
    assert ids.tolist() == best_first(row)[:count]


def test_equals_at_the_border_of_a_step_are_all_found():
    """Values in whole steps of the counting, as many at the border as below it."""
    row = -(np.arange(4000, dtype=np.float32) // 100) / np.float32(SCALE)
    for count in (MOST + 1, 600, 601, 3000):
        assert Compiled(row[None]).top([0], count)[0].tolist() == [list(range(count))]


def test_a_row_of_equals_in_any_number():
    row = np.zeros((1, 3000), np.float32)
    row[0, ::2] = -0.0
    for count in (1, 40, MOST, 700, 3000):
        assert Compiled(row).top([0], count)[0].tolist() == [list(range(count))]


def test_ranks_of_every_token_are_the_order():
    draw = np.random.default_rng(3)
    row = np.round(draw.normal(0, 3, 700)).astype(np.float32)
    row[draw.integers(0, 700, 50)] = -np.inf
    looked = Compiled(row[None]).look([0] * 700, range(700))
    assert [int(rank) for _, rank in looked] == (np.argsort(best_first(row)) + 1).tolist()
    assert [value for value, _ in looked] == row.tolist()
