"""The exponential function of eight floats at a time."""
from __future__ import annotations

from typing import Any

from numba import types

from unspool.kernels.machine.jit import inner
from unspool.kernels.machine.lanes import choose, fma, nearest
from unspool.kernels.machine.simd import bits, convert, f32x8, fill, i32x8

f32, i32 = types.float32, types.int32

LOG2_E = 1.4426950408889634
LN2_HIGH = 0.693359375  # of few bits, so that its product with a whole number is exact
LN2_LOW = -2.12194440054690583e-4  # ln 2 = LN2_HIGH + LN2_LOW
LEAST, MOST = -104.0, 89.0  # beyond, the result is 0 or infinity

# exp(r) = 1 + r + r^2 * (C5 + r * (C4 + ...)) for |r| <= ln 2 / 2: Cephes, expf.
C0, C1, C2 = 1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3
C3, C4, C5 = 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1


@inner
def exp_f32(x: Any) -> Any:
    """exp of each lane of an f32x8, within 1 unit in the last place; exp(-inf) = 0, NaN stays."""
    low, high = fill(f32x8, f32(LEAST)), fill(f32x8, f32(MOST))
    x = choose(x < low, low, x)  # comparing this way round leaves a NaN alone
    x = choose(x > high, high, x)
    n = nearest(x * fill(f32x8, f32(LOG2_E)))
    r = fma(n, fill(f32x8, f32(-LN2_HIGH)), x)
    r = fma(n, fill(f32x8, f32(-LN2_LOW)), r)
    p = fma(fill(f32x8, f32(C0)), r, fill(f32x8, f32(C1)))
    p = fma(p, r, fill(f32x8, f32(C2)))
    p = fma(p, r, fill(f32x8, f32(C3)))
    p = fma(p, r, fill(f32x8, f32(C4)))
    p = fma(p, r, fill(f32x8, f32(C5)))
    p = fma(p, r * r, r) + fill(f32x8, f32(1.0))
    half = nearest(n * fill(f32x8, f32(0.5)))
    return p * power_of_two(half) * power_of_two(n - half)  # n may be beyond a float's exponents


@inner
def power_of_two(n: Any) -> Any:
    """2^n of whole numbers from -126 to 127."""
    n = choose(n == n, n, fill(f32x8, f32(0.0)))
    return bits(f32x8, (convert(i32x8, n) + fill(i32x8, i32(127))) << 23)
