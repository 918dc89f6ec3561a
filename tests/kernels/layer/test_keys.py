"""Keys and values find their place in the pages; queries and keys are normed and turned."""
import numpy as np
import pytest
import torch
from kernels_zoo import FREQUENCIES, Forward, Shape, noise, stored, written

from unspool.kernels import reference
from unspool.kernels.layer import pages


def parts(shape, rows):
    """q, k and v of projected rows: [rows, heads, size]."""
    ends = np.cumsum([shape.heads, shape.kv_heads]) * shape.size
    return [torch.from_numpy(x).unflatten(1, (-1, shape.size))
            for x in np.split(rows, ends, axis=1)]


def turned(shape, rows, first=0):
    q, k, v = parts(shape, rows)
    if shape.norms:
        weights = [torch.from_numpy(w) for w in shape.norms]
        q, k = (reference.rms_norm(x, w, shape.eps) for x, w in zip((q, k), weights, strict=True))
    frequencies = [FREQUENCIES ** (-2 * i / shape.size) for i in range(shape.size // 2)]
    positions = range(first, first + len(rows))
    cos, sin = reference.angles(positions, frequencies, shape.factor)
    q, k = (reference.rotate(x, cos.float(), sin.float()) for x in (q, k))
    return q.numpy(), k.numpy(), v.numpy()


@pytest.mark.parametrize("size", [2, 6, 8, 16, 64, 80])
@pytest.mark.parametrize("factor", [1.0, 1.37])
def test_keys_are_turned_as_the_reference_turns_them(size, factor):
    shape = Shape(size=size, factor=factor)
    text, rows = written(shape, 40)
    q, k, v = turned(shape, shape.rows(40))
    np.testing.assert_array_equal(rows[:, : shape.heads * size], q.reshape(40, -1))
    got = stored(shape, text, 40)
    np.testing.assert_array_equal(got[0], k)
    np.testing.assert_array_equal(got[1], v)


@pytest.mark.parametrize("size", [6, 64, 80])
def test_heads_are_normed_where_the_model_does(size):
    shape = Shape(size=size, norms=(1 + noise(size, seed=5), 1 + noise(size, seed=6)), eps=1e-3)
    text, rows = written(shape, 20)
    q, k, v = turned(shape, shape.rows(20))
    np.testing.assert_allclose(parts(shape, rows)[0], q, rtol=2e-6, atol=2e-6)
    got = stored(shape, text, 20)
    np.testing.assert_allclose(got[0], k, rtol=2e-6, atol=2e-6)
    np.testing.assert_array_equal(got[1], v)


def test_bf16_is_rounded_to_the_nearest_even():
    shape = Shape(kind=pages.BF16, size=64)
    text, _ = written(shape, 40)
    _, k, v = turned(shape, shape.rows(40))
    for got, want in zip(stored(shape, text, 40), (k, v), strict=True):
        np.testing.assert_array_equal(got, torch.from_numpy(want).bfloat16().float().numpy())


def edges(shape, numbers):
    """The values that are stored for a token whose values are all of these, in turn."""
    rows = np.zeros((len(numbers), (shape.heads + 2 * shape.kv_heads) * shape.size), np.float32)
    rows[:, -shape.kv_heads * shape.size :] = np.array(numbers, np.float32)[:, None]
    text = shape.text()
    Forward(shape, rows, [(text, i) for i in range(len(rows))]).write()
    return stored(shape, text, len(rows))[1][:, 0, 0]


def test_bf16_at_its_edges():
    numbers = [np.inf, -np.inf, 0.0, 1e-40, 3.4e38, 1.00390625, 1.01171875]
    want = torch.tensor(numbers, dtype=torch.float32).bfloat16().float().numpy()
    np.testing.assert_array_equal(edges(Shape(kind=pages.BF16), numbers), want)
    every_bit = np.array([0x7FFFFFFF], np.uint32).view(np.float32)
    assert np.isnan(edges(Shape(kind=pages.BF16), every_bit))


def test_int8_is_within_half_a_step():
    shape = Shape(kind=pages.INT8, size=64)
    text, _ = written(shape, 40)
    for got, want in zip(stored(shape, text, 40), turned(shape, shape.rows(40))[1:], strict=True):
        step = np.abs(want).max(-1, keepdims=True) / 127
        assert (np.abs(got - want) <= step * 0.5001).all()
        largest = np.abs(want).argmax(-1)[..., None]
        np.testing.assert_allclose(np.take_along_axis(got, largest, -1),
                                   np.take_along_axis(want, largest, -1), rtol=1e-6)


def test_int8_at_its_edges():
    shape = Shape(kind=pages.INT8)
    assert (edges(shape, [0.0, 5.0, 1e-44]) == np.array([0.0, 5.0, 0.0], np.float32)).all()
    assert np.isnan(edges(shape, [np.nan, np.inf, -np.inf])).all()


def test_other_layers_and_tokens_are_left_alone():
    shape = Shape()
    text, _ = written(shape, 40)
    before = [slab.copy() for slab in text.pool.slabs]
    Forward(shape, shape.rows(1, seed=9), [(text, 17)]).write()
    assert all((a[0] == b[0]).all() for a, b in zip(before, text.pool.slabs, strict=True))
    k, v = stored(shape, text, 40)
    other, others = stored(shape, written(shape, 40)[0], 40)
    same = np.arange(40) != 17
    np.testing.assert_array_equal(k[same], other[same])
    np.testing.assert_array_equal(v[same], others[same])
    assert (k[17] != other[17]).all() and (v[17] != others[17]).all()


def test_how_rows_are_shared_out_changes_nothing():
    shape, two = Shape(size=6), Shape(size=6, threads=2)
    one, _ = written(shape, 100)
    many, _ = written(two, 100)
    for got, want in zip(stored(shape, many, 100), stored(shape, one, 100), strict=True):
        np.testing.assert_array_equal(got, want)
