"""Attention over pages: the reference's sums, and the same bits however the work is cut."""
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels_zoo import Forward, Shape, blocks_of, expected, stored, written

from unspool.kernels import reference
from unspool.kernels.layer import pages

PLAIN = Shape()


def assert_close(got, want):
    """Within 1e-5 of the largest."""
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())


def bits(array):
    return np.ascontiguousarray(array).view(np.int32)


def assert_same(got, want):
    np.testing.assert_array_equal(bits(got), bits(want))


def last_rows(shape, text, rows, count, **how):
    """The answer for the last `count` rows, in one forward."""
    places = [(text, i) for i in range(len(rows) - count, len(rows))]
    return Forward(shape, rows[-count:], places, **how).attend()


def check(shape, length, count):
    text, rows = written(shape, length)
    got = last_rows(shape, text, rows, count)
    assert_close(got, expected(shape, text, rows[-count:], length - count))


@pytest.mark.parametrize("group", range(1, 9))
def test_groups_of_query_heads(group):
    check(Shape(group=group), 300, 45)


@pytest.mark.parametrize("size", [2, 6, 8, 10, 64, 80, 128])
def test_sizes_of_heads(size):
    check(Shape(size=size, kv_heads=1, scale=size**-0.5), 300, 45)


@pytest.mark.parametrize("length", [1, 2, 7, 8, 15, 16, 17, 255, 256, 257, 512, 513])
def test_lengths_at_the_edges_of_pages_and_segments(length):
    check(PLAIN, length, min(length, 3))


@pytest.mark.parametrize("window", [1, 2, 15, 16, 17, 200, 256, 300, 10_000])
def test_windows(window):
    check(Shape(window=window), 600, 90)


@pytest.mark.parametrize("kind", [pages.BF16, pages.INT8])
@pytest.mark.parametrize("size", [6, 64])
def test_smaller_numbers_are_those_that_were_stored(kind, size):
    check(Shape(kind=kind, size=size), 300, 45)


def test_large_scores_do_not_overflow():
    shape = Shape(scale=200.0)
    text, rows = written(shape, 300)
    got = last_rows(shape, text, rows, 20)
    assert np.isfinite(got).all()
    want = expected(shape, text, rows[-20:], 280)
    np.testing.assert_allclose(got, want, atol=0.03 * np.abs(want).max())  # scores of 1e4 in f32


# ── masks ────────────────────────────────────────────────────────────────────────────────────────
def masked(shape, text, row, mask):
    """The reference over the keys that the mask leaves."""
    k, v = stored(shape, text, len(mask))
    seen = np.flatnonzero(mask)
    q = row[: shape.heads * shape.size].reshape(1, shape.heads, shape.size)
    wide = [torch.from_numpy(x.astype(np.float64)) for x in (q, k[seen], v[seen])]
    return reference.attend(*wide, len(seen) - 1, scale=shape.scale).flatten(1).numpy()


@pytest.mark.parametrize("kind", [pages.F32, pages.INT8])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.97])
def test_a_mask_leaves_the_keys_it_names(share, kind):
    shape = Shape(kind=kind)
    text, rows = written(shape, 300)
    mask = (np.random.default_rng(1).random(300) < share).astype(np.int8)
    mask[123] = 1
    got = last_rows(shape, text, rows, 1, masks=[mask])
    assert_close(got, masked(shape, text, rows[-1], mask))


def test_rows_may_have_masks_of_their_own_or_none():
    text, rows = written(PLAIN, 300)
    odd = (np.arange(299) % 2).astype(np.int8)
    got = last_rows(PLAIN, text, rows, 2, masks=[odd, None])
    assert_close(got[:1], masked(PLAIN, text, rows[298], odd))
    assert_same(got[1:], last_rows(PLAIN, text, rows, 1))


def test_a_mask_of_all_keys_changes_no_bit():
    text, rows = written(PLAIN, 300)
    every = np.ones(300, np.int8)
    assert_same(last_rows(PLAIN, text, rows, 1, masks=[every]), last_rows(PLAIN, text, rows, 1))


@pytest.mark.parametrize("split", [False, True])
def test_a_query_that_sees_nothing_gives_zeros(split):
    text, rows = written(PLAIN, 300)
    nothing = np.zeros(300, np.int8)
    assert not last_rows(PLAIN, text, rows, 1, masks=[nothing], split=split).any()


def test_masked_keys_are_never_multiplied():
    """Not even by 0: a NaN among them would spread."""
    text, rows = written(PLAIN, 300)
    mask = np.ones(300, np.int8)
    mask[[3, 40, 41, 270]] = 0
    want = last_rows(PLAIN, text, rows, 1, masks=[mask])
    spoil(PLAIN, text, [3, 40, 41, 270])
    assert_same(last_rows(PLAIN, text, rows, 1, masks=[mask]), want)


# ── what a query does not see ────────────────────────────────────────────────────────────────────
def spoil(shape, text, tokens):
    """Overwrite keys and values by NaN."""
    for token in tokens:
        page = text.pool.view(text.numbers[token // pages.PAGE])
        numbers = page.view(np.float32)[shape.layer]
        keys = numbers[:, 0].reshape(shape.kv_heads, -1, pages.PAGE)
        keys[:, :, token % pages.PAGE] = math.nan
        numbers[:, 1].reshape(shape.kv_heads, pages.PAGE, -1)[:, token % pages.PAGE] = math.nan
    assert np.isnan(blocks_of(text, shape.layer).view(np.float32)).any()


def test_what_stands_after_a_query_is_never_read():
    text, rows = written(PLAIN, 300)
    want = last_rows(PLAIN, text, rows[:270], 5)
    spoil(PLAIN, text, range(270, 300))
    assert_same(last_rows(PLAIN, text, rows[:270], 5), want)


def test_what_stands_before_a_window_is_never_read():
    shape = Shape(window=37)
    text, rows = written(shape, 600)
    want = last_rows(shape, text, rows, 1)
    spoil(shape, text, range(600 - 37))
    assert_same(last_rows(shape, text, rows, 1), want)


def test_a_nan_that_is_seen_is_not_hidden():
    text, rows = written(PLAIN, 300)
    spoil(PLAIN, text, [100])
    assert np.isnan(last_rows(PLAIN, text, rows, 1)).all()


# ── the same bits ────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("window", [0, 5, 300])
@pytest.mark.parametrize("threads", [1, 2])
def test_whole_and_in_parts(window, threads):
    shape = Shape(window=window, threads=threads)
    text, rows = written(shape, 700)
    whole = last_rows(shape, text, rows, 3, split=False)
    parts = last_rows(shape, text, rows, 3, split=True)
    assert_same(parts, whole)


@pytest.mark.parametrize("kind", [pages.F32, pages.BF16, pages.INT8])
def test_a_chunk_and_one_by_one(kind):
    shape = Shape(kind=kind)
    text, rows = written(shape, 600)
    chunk = last_rows(shape, text, rows, 600)
    each = [Forward(shape, rows[i : i + 1], [(text, i)]).attend() for i in range(0, 600, 23)]
    assert_same(np.concatenate(each), chunk[::23])


def test_one_thread_and_two():
    text, rows = written(PLAIN, 400)
    one = last_rows(PLAIN, text, rows, 100)
    assert_same(last_rows(Shape(threads=2), text, rows, 100), one)


def test_a_batch_and_each_alone():
    lengths = [1, 16, 40, 300, 530]
    each = [written(PLAIN, n, seed=n) for n in lengths]
    places = [(text, n - 1) for n, (text, _) in zip(lengths, each, strict=True)]
    rows = np.stack([rows[-1] for _, rows in each])
    batch = Forward(PLAIN, rows, places).attend()
    for i, place in enumerate(places):
        assert_same(Forward(PLAIN, rows[i : i + 1], [place]).attend(), batch[i : i + 1])


@pytest.mark.parametrize("reserve", [1, 64, 2000])
def test_how_the_memory_was_made(reserve):
    text, rows = written(PLAIN, 300)
    other, _ = written(PLAIN, 300, text=PLAIN.text(reserve))
    assert [len(t.pool.slabs) > 1 for t in (text, other)] == [True, reserve < 300]
    want = last_rows(PLAIN, text, rows, 4)
    assert_same(last_rows(PLAIN, other, rows, 4), want)
    assert_same(last_rows(PLAIN, other.share(300), rows, 4), want)


@settings(max_examples=25)
@given(st.data())
def test_any_cut_of_the_rows_into_forwards(data):
    text, rows = written(PLAIN, 530)
    want = last_rows(PLAIN, text, rows, 530)
    chosen = data.draw(st.lists(st.integers(0, 529), min_size=1, max_size=12))
    split = data.draw(st.sampled_from([None, True, False]))
    got = Forward(PLAIN, rows[chosen], [(text, i) for i in chosen], split=split).attend()
    assert_same(got, want[chosen])
