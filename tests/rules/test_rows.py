"""What a definition is told of its rows: each quantity by another formula, in numpy and torch."""
import array_api_compat.torch as xp_of_torch
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unspool.core.history import history
from unspool.rules.rows import EVERYTHING, GENERATED, Rows

VALUES = arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 9)),
                elements=st.one_of(st.floats(-9, 9), st.sampled_from([0.0, 1.0, -np.inf])))
LIBRARIES = st.sampled_from([(np.asarray, np), (torch.asarray, xp_of_torch)])


def rows_of(values, library, *told):
    make, xp = library
    return Rows(make(values), *told, xp=xp)


@given(VALUES, LIBRARIES)
def test_what_is_true_of_rows(values, library):
    values[:, -1] = 0.5  # something is left of each
    rows = rows_of(values, library)
    for r, row in enumerate(values):
        p = np.exp(row) / np.exp(row).sum()
        order = sorted(range(len(row)), key=lambda i, row=row: (-row[i], i))
        assert rows.maximum[r, 0] == row.max() and rows.count[r, 0] == np.isfinite(row).sum()
        assert np.asarray(rows.kept[r]).tolist() == np.isfinite(row).tolist()
        assert np.asarray(rows.probs[r]) == pytest.approx(p, abs=1e-14)
        assert np.asarray(rows.rank[r]).tolist() == np.argsort(order).tolist()
        entropy = -sum(x * np.log(x) for x in p if x > 0)
        assert rows.entropy[r, 0] == pytest.approx(entropy, abs=1e-12)
        above = [p[order[:order.index(i)]].sum() for i in range(len(row))]
        assert np.asarray(rows.above[r]) == pytest.approx(above, abs=1e-12)


@given(VALUES, VALUES, LIBRARIES)
def test_sums_in_the_order_of_a_key(x, key, library):
    key = np.resize(key, x.shape)
    x = np.where(np.isfinite(x), x, 0.0)
    make, _ = library
    rows = rows_of(x, library)
    got = np.asarray(rows.before(make(x), make(key)))
    back = rows.unordered(rows.ordered(make(x), make(key)), make(key))
    assert np.asarray(back).tolist() == x.tolist()
    for r in range(len(x)):
        order = sorted(range(x.shape[1]), key=lambda i, r=r: (key[r, i], i))
        want = [sum(x[r, j] for j in order[:order.index(i)]) for i in range(x.shape[1])]
        assert got[r] == pytest.approx(want, abs=1e-12)


@given(LIBRARIES)
def test_a_cut_spares_the_likeliest_and_a_drop_does_not(library):
    values = np.array([[1.0, 3.0, 3.0], [2.0, -np.inf, 0.0]])
    rows = rows_of(values, library)
    which = rows.kept | True
    assert np.asarray(rows.drop(which)).tolist() == [[-np.inf] * 3] * 2
    assert np.asarray(rows.cut(which)).tolist() == [[-np.inf, 3.0, -np.inf],
                                                    [2.0, -np.inf, -np.inf]]


@given(LIBRARIES)
def test_what_of_the_text_is_counted(library):
    make, _ = library
    text = history([3, 3, 1]).extend(1).extend(2).extend(1)
    asked = [(EVERYTHING, -1), (GENERATED, -1), (EVERYTHING, 4), (GENERATED, 2), (GENERATED, 99),
             (EVERYTHING, 0)]
    rows = rows_of(np.zeros((len(asked), 4)), library, [text] * len(asked))
    scope, last = (make(np.array([[float(x[i])] for x in asked])) for i in (0, 1))
    assert np.asarray(rows.counts(scope, last)).tolist() == [
        [0, 3, 1, 2], [0, 2, 1, 0], [0, 3, 1, 0], [0, 1, 1, 0], [0, 2, 1, 0], [0, 0, 0, 0]]
    assert (float(rows.length[0, 0]), float(rows.written[0, 0])) == (6, 3)


@given(LIBRARIES)
def test_tokens_that_are_named(library):
    """Ids beyond the vocabulary name none, and one may be named twice."""
    rows = rows_of(np.zeros((3, 4)), library)
    found = np.asarray(rows.marked([(1, 1, 3), (), (-1, 4, 2**40, 0)]))
    assert found.tolist() == [[False, True, False, True], [False] * 4, [True] + [False] * 3]
