"""The Mersenne Twister: numpy's numbers, torch's permutations."""
import numpy as np
import pytest
import torch

from unspool.kernels.machine.jit import kernel
from unspool.kernels.reading.twister import STATE, comes_early, numbers, randperm

SEEDS = [0, 1, 2, 15485863, 2**31, 2**32 - 1, 2**32, 2**63 + 12345, 2**64 - 1]


def torchs(seed, size):
    return torch.randperm(size, generator=torch.Generator().manual_seed(seed)).numpy()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_numbers_are_those_of_numpy(seed):
    want = np.frombuffer(np.random.RandomState(seed & 0xFFFFFFFF).bytes(4 * 2000), "<u4")
    assert (numbers(seed, 2000) == want).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_bits_are_those_that_torch_draws(seed):
    want = torch.randint(0, 2, (3000,), generator=torch.Generator().manual_seed(seed))
    assert (numbers(seed, 3000) & 1).tolist() == want.tolist()


@pytest.mark.parametrize("size", [1, 2, 3, 17, 623, 624, 625, 1000, 49152])
def test_permutations_are_those_of_torch(size):
    for seed in SEEDS + list(range(100, 120 if size < 10_000 else 103)):
        assert (randperm(seed, size) == torchs(seed, size)).all(), seed


def test_of_a_permutation_only_the_beginning():
    for count in (0, 1, 5, 69, 70):
        assert randperm(7, 70, count).tolist() == torchs(7, 70)[:count].tolist()


@kernel("int64(int64, int64, int64, int64, int64)")
def early(seed: int, size: int, count: int, token: int, state: int) -> int:
    return 1 if comes_early(seed, size, count, token, state) else 0


@pytest.mark.parametrize(
    ("size", "count"), [(1, 0), (1, 1), (5, 2), (64, 16), (64, 64), (700, 650)])
def test_following_one_number_is_the_whole_shuffle(size, count):
    room = np.empty(STATE, np.int64)
    for seed in (0, 3, 2**32 - 1):
        first = set(torchs(seed, size)[:count].tolist())
        found = {t for t in range(size) if early(seed, size, count, t, room.ctypes.data)}
        assert found == first
