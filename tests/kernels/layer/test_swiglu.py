"""SwiGLU of rows of any size."""
import numpy as np
import pytest
import torch
from kernels_zoo import address, noise

from unspool.kernels import reference
from unspool.kernels.layer.swiglu import swiglu
from unspool.kernels.machine.jit import kernel


@kernel("void(int64, int64, int64, int64)")
def gated(gate, up, out, size):
    swiglu(gate, up, out, size)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 64, 1537])
def test_the_references_gate(size):
    gate, up = noise(size, scale=10), noise(size, seed=1)
    out = np.full(size + 1, 7, np.float32)
    gated(address(gate), address(up), address(out), size)
    want = reference.swiglu(*(torch.from_numpy(x).double() for x in (gate, up))).numpy()
    np.testing.assert_allclose(out[:-1], want, rtol=1e-6, atol=1e-30)
    assert out[-1] == 7
    gated(address(gate), address(up), address(gate), size)
    np.testing.assert_array_equal(gate, out[:-1])


def test_the_ends():
    gate = np.array([-1e30, -200, -88, 0, 88, 200, 1e30, np.nan], np.float32)
    out, up = np.empty_like(gate), np.ones_like(gate)
    gated(address(gate), address(up), address(out), 8)
    want = reference.swiglu(*map(torch.from_numpy, (gate, up))).numpy()
    np.testing.assert_allclose(out, want, rtol=1e-6, atol=1e-36)
