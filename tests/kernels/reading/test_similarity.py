"""The largest cosine with the states before: the definition, in one order of sums."""
import numpy as np
import pytest
import torch
from kernels_zoo import noise

from unspool.kernels import reference
from unspool.kernels.reading.similarity import similarity


def defined(states, row):
    """In float64, from the definition."""
    wide = states.astype(np.float64)
    cosines = [0.0 if not (wide[row].any() and other.any()) else
               wide[row] @ other / np.linalg.norm(wide[row]) / np.linalg.norm(other)
               for other in wide[:row]]
    return max(cosines, default=-1.0)


@pytest.mark.parametrize("width", [1, 7, 8, 9, 32, 576, 1003])
def test_it_is_the_definition(width):
    states = noise(20, width, seed=width)
    want = [defined(states, row) for row in range(20)]
    assert similarity(states, 20) == pytest.approx(want, abs=1e-12)
    assert reference.similarity(torch.from_numpy(states), 20) == pytest.approx(want, abs=1e-12)


def test_the_first_token_zeros_and_copies():
    states = noise(5, 40)
    states[1], states[3], states[4] = 0, 2 * states[2], -states[0]
    for found in (similarity(states, 5), reference.similarity(torch.from_numpy(states), 5)):
        assert found[:2] == [-1.0, 0.0] and found[3] == pytest.approx(1, abs=1e-15)
        assert found[4] == pytest.approx(defined(states, 4), abs=1e-15)
    opposite = np.stack([states[0], -states[0]])
    assert similarity(opposite, 1) == pytest.approx([-1.0], abs=1e-15)


def test_bits_depend_on_the_states_before_alone():
    states = noise(30, 61)
    whole = similarity(states, 30)
    assert similarity(states, 3) == whole[27:]
    assert [similarity(states[:end].copy(), 1)[0] for end in range(1, 31)] == whole
    wide = np.full((30, 80), np.nan, np.float32)  # rows that lie further apart
    wide[:, :61] = states
    assert similarity(wide[:, :61], 30) == whole


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_very_small_and_very_large_states(scale):
    states = noise(6, 16, scale=scale)
    assert similarity(states, 6) == pytest.approx([defined(states, i) for i in range(6)], abs=1e-12)
