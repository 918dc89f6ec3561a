"""Every weight format: packing keeps each value, products are right and the same in any batch."""
import numpy as np
import pytest
from packed_zoo import FLOATS, QUANTISED, multiply, packed, raw_matrix, rows_of, values_of

from unspool.kernels.weights.activations import F32, I8, I16
from unspool.kernels.weights.formats import FORMATS

FORMS = [(name, form) for name in QUANTISED for form in (I16, I8)] + [(n, F32) for n in FLOATS]
ERROR = {F32: 1e-6, I16: 4e-5, I8: 1.5e-2}  # relative, of a product of 512 columns


def x_of(rows, columns, seed=1):
    return np.random.default_rng(seed).standard_normal((rows, columns)).astype(np.float32)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("rows", [1, 8, 21])
def test_packing_keeps_every_value(name, rows):
    raw = raw_matrix(name, rows, 512)
    np.testing.assert_array_equal(rows_of(packed(name, raw, 512)), values_of(name, raw, 512))


@pytest.mark.parametrize("name", FORMATS)
def test_rows_may_be_packed_in_another_order(name):
    raw, order = raw_matrix(name, 24, 256), np.random.default_rng(0).permutation(24)
    mixed = rows_of(packed(name, raw, 256, order))
    np.testing.assert_array_equal(mixed, values_of(name, raw, 256)[order])


@pytest.mark.parametrize("name,form", FORMS)
def test_products(name, form):
    raw, x = raw_matrix(name, 40, 512), x_of(7, 512)
    want = x.astype(np.float64) @ values_of(name, raw, 512).T
    got = multiply(packed(name, raw, 512), form, x)
    assert np.linalg.norm(got - want) <= ERROR[form] * np.linalg.norm(want)


@pytest.mark.parametrize("name,form", FORMS)
def test_a_row_does_not_depend_on_the_others(name, form):
    matrix, x = packed(name, raw_matrix(name, 33, 256), 256), x_of(70, 256)
    whole = multiply(matrix, form, x)
    assert np.isfinite(whole).all()
    for rows in (1, 2, 3, 4, 5, 7, 16, 65):
        part = multiply(matrix, form, x[:rows])
        np.testing.assert_array_equal(part.view(np.int32), whole[:rows].view(np.int32))


@pytest.mark.parametrize("name,form", FORMS)
def test_units_may_be_computed_apart_and_in_any_order(name, form):
    matrix, x = packed(name, raw_matrix(name, 48, 256), 256), x_of(3, 256)
    apart = multiply(matrix, form, x, units=[(i, i + 1) for i in reversed(range(matrix.units))])
    np.testing.assert_array_equal(apart, multiply(matrix, form, x))


@pytest.mark.parametrize("name", ["Q4_1", "F32"])
def test_bias_and_residual_are_added(name):
    form = I16 if name in QUANTISED else F32
    matrix, x = packed(name, raw_matrix(name, 21, 256), 256), x_of(5, 256)
    bias, onto = x_of(1, 21, 2)[0], x_of(5, 21, 3)
    plain = multiply(matrix, form, x)
    np.testing.assert_array_equal(multiply(matrix, form, x, bias=bias), plain + bias)
    np.testing.assert_array_equal(multiply(matrix, form, x, bias, onto), onto + (plain + bias))


@pytest.mark.parametrize("form", [I16, I8])
def test_rows_of_zeros_and_of_huge_numbers(form):
    matrix = packed("Q4_1", raw_matrix("Q4_1", 16, 64), 64)
    assert (multiply(matrix, form, np.zeros((1, 64), np.float32)) == 0).all()
    huge = multiply(matrix, form, np.full((1, 64), 1e30, np.float32))
    one = multiply(matrix, form, np.full((1, 64), 1.0, np.float32))
    np.testing.assert_allclose(huge, one * 1e30, rtol=1e-5)


def test_columns_need_no_round_number_where_weights_are_floats():
    raw, x = raw_matrix("F32", 5, 13), x_of(3, 13)
    want = x.astype(np.float64) @ values_of("F32", raw, 13).T
    np.testing.assert_allclose(multiply(packed("F32", raw, 13), F32, x), want, rtol=1e-5, atol=1e-5)
