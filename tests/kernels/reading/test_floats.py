"""exp and log against correctly rounded values, at their ends, and lane by lane."""
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unspool.kernels.machine.jit import kernel
from unspool.kernels.machine.simd import f64x4, f64x8, load, store
from unspool.kernels.reading.floats import exp, log


@kernel("void(int64, int64, int64)")
def exp_by_four(x, out, count):
    for i in range(0, count, 4):
        store(out + 8 * i, exp(load(f64x4, x + 8 * i)))


@kernel("void(int64, int64, int64)")
def exp_by_eight(x, out, count):
    for i in range(0, count, 8):
        store(out + 8 * i, exp(load(f64x8, x + 8 * i)))


@kernel("void(int64, int64, int64)")
def log_by_eight(x, out, count):
    for i in range(0, count, 8):
        store(out + 8 * i, log(load(f64x8, x + 8 * i)))


def run(function, numbers):
    x = np.resize(np.array(numbers, np.float64), -(-len(numbers) // 8) * 8)
    out = np.empty_like(x)
    function(x.ctypes.data, out.ctypes.data, len(x))
    return out[:len(numbers)]


def off(got, x, function):
    """How many units in the last place a result is from the true one."""
    with localcontext() as context:
        context.prec = 60
        true = getattr(Decimal(x), function)()
        return abs((Decimal(float(got)) - true) / Decimal(math.ulp(float(true))))


@settings(max_examples=50)
@given(st.lists(st.floats(-707, 709), min_size=8, max_size=8))
def test_exp_is_within_one_unit(numbers):
    for x, got in zip(numbers, run(exp_by_eight, numbers), strict=True):
        assert off(got, x, "exp") <= 1


def test_exp_near_zero_and_over_its_range_is_within_one_unit():
    draw = np.random.default_rng(0)
    for x in (draw.uniform(-0.5, 0.5, 2000), draw.uniform(-40, 0, 2000)):
        assert max(off(y, v, "exp") for v, y in zip(x, run(exp_by_eight, x), strict=True)) <= 1


@settings(max_examples=50)
@given(st.lists(st.floats(1e-300, 1e300), min_size=8, max_size=8))
def test_log_is_within_one_unit(numbers):
    for x, got in zip(numbers, run(log_by_eight, numbers), strict=True):
        assert x == 1.0 or off(got, x, "ln") <= 1


def test_log_near_one_is_within_one_unit():
    x = 1 - np.random.default_rng(1).uniform(0, 1, 2000) ** 8
    x = x[(x > 0) & (x < 1)]
    assert max(off(y, v, "ln") for v, y in zip(x, run(log_by_eight, x), strict=True)) <= 1


@pytest.mark.parametrize(("x", "y"), [
    (0.0, 1.0), (-0.0, 1.0), (-np.inf, 0.0), (-708.5, 0.0), (-1e300, 0.0), (np.inf, np.inf),
    (710.0, np.inf)])
def test_the_ends_of_exp(x, y):
    assert run(exp_by_eight, [x]).tolist() == [y]


def test_nan_stays_nan_and_keeps_to_its_lane():
    got = run(exp_by_eight, [0.0, np.nan, 0.0, -np.inf])
    assert got[0] == got[2] == 1.0 and got[3] == 0.0 and np.isnan(got[1])


def test_log_of_one_is_zero():
    assert run(log_by_eight, [1.0]).tolist() == [0.0]


def test_the_number_of_lanes_changes_no_bit():
    x = np.random.default_rng(2).uniform(-50, 5, 800)
    assert (run(exp_by_four, x) == run(exp_by_eight, x)).all()
