"""What mixes do with a row, against plain Python."""
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from mixes_zoo import OUT, agree, logs, probabilities, random_rows

from unspool.mixes.rows import bounded, likeliest, log_softmax, logprobs, nucleus, plausible

ROW = st.lists(st.floats(-20, 20), min_size=3, max_size=50)
WHOLE = st.lists(st.integers(-3, 3), min_size=3, max_size=50)  # with ties


@given(ROW)
def test_log_softmax_by_definition(row):
    agree(log_softmax(row), logs(row))


def test_log_softmax_of_what_is_ruled_out():
    agree(log_softmax([1.0, OUT, 1.0]), [-math.log(2), OUT, -math.log(2)])
    assert log_softmax([OUT, OUT]).tolist() == [OUT, OUT]


def test_a_token_ruled_out_is_the_least_likely_one_of_its_reader():
    known = [3.0, -4.0, 1.0]
    agree(bounded([3.0, OUT, -4.0, 1.0]), [3.0, -4.0, -4.0, 1.0])
    agree(logprobs([3.0, OUT, -4.0, 1.0])[[0, 2, 3]], logs(known))


def test_and_never_likelier_than_one_in_all():
    agree(bounded([5.0, OUT, OUT, OUT]), [5.0] + [5 - math.log(4)] * 3)
    agree(logprobs([5.0, OUT, 5.0, OUT, OUT]), np.log([0.5, 0.2, 0.5, 0.2, 0.2]))


def test_a_reader_of_nothing_finds_all_equal_and_a_whole_row_stays():
    assert bounded([OUT, OUT]).tolist() == [0.0, 0.0]
    row = random_rows(0)[0]
    assert bounded(row) is row


@given(ROW, st.floats(0, 1))
def test_plausible_tokens_by_definition(row, cut):
    p = probabilities(row)
    edge = [abs(x - cut * max(p)) < 1e-12 for x in p]
    got = plausible(np.array(row), cut)
    assert all(near or kept == (x >= cut * max(p)) for kept, x, near in zip(got, p, edge,
                                                                            strict=True))
    assert got[np.argmax(row)]


def test_the_ends_of_the_plausible():
    row = np.array([0.0, 2.0, 2.0, -700.0])
    assert plausible(row, 0).all()
    assert plausible(row, 1).tolist() == [False, True, True, False]


@given(WHOLE, st.sampled_from([0.0, 0.013, 0.21, 0.5, 0.83, 0.97, 1.0]))
def test_the_nucleus_by_definition(row, mass):
    p = probabilities(row)
    want, held = set(), 0.0
    for token in sorted(range(len(row)), key=lambda i: (-row[i], i)):
        if want and mass < 1 and held >= mass - 1e-6:
            break
        want.add(token)
        held += p[token]
    assert set(np.flatnonzero(nucleus(np.array(row, float), mass))) == want


def test_the_likeliest_first_and_of_equals_the_lowest_id():
    assert likeliest(np.array([1.0, 3.0, OUT, 3.0, 2.0])).tolist() == [1, 3, 4, 0, 2]
