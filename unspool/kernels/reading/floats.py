"""exp and log of vectors of float64, of any number of lanes: the same bits on every CPU.

Both are a reduction and a polynomial in a fixed order, within one unit in the last place. Neither
calls the C library, whose results differ from machine to machine.
"""
from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from unspool.kernels.machine.jit import inner
from unspool.kernels.machine.lanes import choose, fma, nearest
from unspool.kernels.machine.simd import Vector, splat

LOG2_E = 1.4426950408889634
LN2_HIGH = 6.93147180369123816490e-01  # of few bits, so that its product with an exponent is exact
LN2_LOW = 1.90821492927058770002e-10  # ln 2 = LN2_HIGH + LN2_LOW
LEAST, MOST = -708.0, 709.0  # beyond, exp gives 0 or infinity

# exp(r) = 1 + r + r^2 * (E0 + r * (E1 + ...)) for |r| <= ln 2 / 2: minimax, relative error 1.3e-17.
E0, E1, E2, E3 = 0.5000000000000001, 0.16666666666666669, 0.04166666666662413, 0.008333333333330062
E4, E5, E6 = 0.0013888888917213717, 0.00019841269863053618, 2.4801521295954376e-05
E7, E8, E9 = 2.7557268459997064e-06, 2.7620088445409746e-07, 2.510038549551032e-08

# log(1 + f) by s = f / (2 + f), for 1 + f from sqrt(1/2) to sqrt(2): fdlibm, e_log.c.
L1, L2, L3 = 6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01
L4, L5, L6 = 2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01
L7 = 1.479819860511658591e-01

SHIFT = 6755399441055744.0  # 1.5 * 2^52: added to a whole number, it stands in the lowest bits
LIFT = 4503599627370496.0  # 2^52
ONE_BITS, ROOT_BITS = 0x3FF0000000000000, 0x3FE6A09E00000000  # of 1, and nearly of sqrt(1/2)
MANTISSA = 0x000FFFFFFFFFFFFF


@intrinsic
def like(context: Any, vector: Any, value: Any) -> Any:
    """A number in every lane of a vector of the same kind."""

    def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
        return splat(b, a[1], vector.lanes)

    return vector(vector, types.float64), emit


def _bitcast(element: str) -> Any:
    def function(context: Any, vector: Any) -> Any:
        out = Vector(element, vector.lanes)

        def emit(c: Any, b: Any, s: Any, a: Any) -> Any:
            return b.bitcast(a[0], out.llvm)

        return out(vector), emit

    return intrinsic(function)


to_words, to_floats = _bitcast("i64"), _bitcast("f64")  # the same bits as numbers of another kind


@inner
def exp(x: Any) -> Any:
    """exp of each lane. Exactly 0 below LEAST and infinity above MOST; NaN stays NaN."""
    low, high = like(x, LEAST), like(x, MOST)
    inside = choose(x < low, low, x)  # comparing this way round leaves a NaN alone
    inside = choose(inside > high, high, inside)
    n = nearest(inside * like(x, LOG2_E))
    r = fma(n, like(x, -LN2_HIGH), inside)
    r = fma(n, like(x, -LN2_LOW), r)
    p = fma(like(x, E9), r, like(x, E8))
    p = fma(p, r, like(x, E7))
    p = fma(p, r, like(x, E6))
    p = fma(p, r, like(x, E5))
    p = fma(p, r, like(x, E4))
    p = fma(p, r, like(x, E3))
    p = fma(p, r, like(x, E2))
    p = fma(p, r, like(x, E1))
    p = fma(p, r, like(x, E0))
    p = fma(p, r * r, r) + like(x, 1.0)
    out = to_floats(to_words(p) + (to_words(n + like(x, SHIFT)) << 52))
    out = choose(x < low, like(x, 0.0), out)
    return choose(x > high, like(x, float("inf")), out)


@inner
def log(x: Any) -> Any:
    """Natural log of each lane, which must be positive, finite and not subnormal."""
    moved = to_words(x) + (ONE_BITS - ROOT_BITS)
    exponent = to_floats((moved >> 52) | to_words(like(x, LIFT))) - like(x, LIFT + 1023.0)
    f = to_floats((moved & MANTISSA) + ROOT_BITS) - like(x, 1.0)
    s = f / (like(x, 2.0) + f)
    z = s * s
    w = z * z
    odd = fma(w, fma(w, fma(w, like(x, L7), like(x, L5)), like(x, L3)), like(x, L1)) * z
    even = fma(w, fma(w, like(x, L6), like(x, L4)), like(x, L2)) * w
    half = like(x, 0.5) * f * f
    rest = s * (half + (odd + even)) + exponent * like(x, LN2_LOW)
    return exponent * like(x, LN2_HIGH) - ((half - rest) - f)
