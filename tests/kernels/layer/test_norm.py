"""RMS norm of rows of any size."""
import numpy as np
import pytest
import torch
from kernels_zoo import address, noise
from numba import types

from unspool.kernels import reference
from unspool.kernels.layer.norm import rms_norm
from unspool.kernels.machine.jit import kernel


@kernel("void(int64, int64, int64, int64, float32)")
def norm(x, weight, out, size, eps):
    rms_norm(x, weight, out, size, types.float32(eps))


@pytest.mark.parametrize("size", [1, 2, 6, 7, 8, 9, 31, 32, 33, 40, 64, 576, 2049])
def test_the_references_norm(size):
    x, weight = noise(size, scale=3), 1 + noise(size, seed=1)
    out = np.full(size + 1, 7, np.float32)
    norm(address(x), address(weight), address(out), size, 1e-5)
    want = reference.rms_norm(*map(torch.from_numpy, (x, weight)), 1e-5).numpy()
    np.testing.assert_allclose(out[:-1], want, rtol=1e-6, atol=1e-6)
    assert out[-1] == 7
    norm(address(x), address(weight), address(x), size, 1e-5)
    np.testing.assert_array_equal(x, out[:-1])


def test_what_follows_the_row_is_not_read():
    x, weight = noise(16), noise(16, seed=1)
    x[11:] = weight[11:] = np.nan
    out = np.empty(16, np.float32)
    norm(address(x), address(weight), address(out), 11, 1e-5)
    assert np.isfinite(out[:11]).all()


def test_a_row_of_zeros_stays_one():
    x, weight = np.zeros(24, np.float32), noise(24)
    norm(address(x), address(weight), address(x), 24, 1e-5)
    assert (x == 0).all()
