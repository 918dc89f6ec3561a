"""The exponential function against float64."""
import numpy as np
from kernels_zoo import address

from unspool.kernels.layer.exp import exp_f32
from unspool.kernels.machine.jit import kernel
from unspool.kernels.machine.simd import f32x8, load, store


@kernel("void(int64, int64, int64)")
def exponentials(x, out, size):
    for i in range(0, 4 * size, 32):
        store(out + i, exp_f32(load(f32x8, x + i)))


def of(numbers):
    x = np.zeros(-(-len(numbers) // 8) * 8, np.float32)
    x[: len(numbers)] = numbers
    out = np.empty_like(x)
    exponentials(address(x), address(out), len(x))
    return out[: len(numbers)]


def test_within_a_unit_in_the_last_place():
    for x in (np.linspace(-87, 88.7, 400_000), np.linspace(-1, 1, 400_000)):
        x = x.astype(np.float32)
        exact = np.exp(x.astype(np.float64))
        assert (np.abs(of(x) - exact) / np.spacing(exact.astype(np.float32))).max() < 1


def test_results_too_small_for_full_precision():
    x = np.linspace(-104.5, -87, 10_000).astype(np.float32)
    np.testing.assert_allclose(of(x), np.exp(x.astype(np.float64)), rtol=0, atol=1.5e-45)


def test_the_ends():
    got = of(np.array([0, -0.0, -np.inf, np.inf, np.nan, -1e38, 1e38, 88.8], np.float32))
    np.testing.assert_array_equal(got, np.array([1, 1, 0, np.inf, np.nan, 0, np.inf, np.inf]))
