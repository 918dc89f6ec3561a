"""Cuts of the tail, asked about a few of the best tokens: how many to keep, all, or unknown."""
import numpy as np
import pytest

from unspool.kernels.shaping.cuts import EDGE, greedy, min_p, top_k, top_p
from unspool.kernels.shaping.row import ALL, COUNT, MASS, UNKNOWN, VALUES, WORDS


def ask(cut, values, *numbers, mass=None):
    """The answer about tokens with these values, best first, of a row with this mass."""
    values = np.array(values, np.float64)
    row, given = np.zeros(WORDS, np.int64), np.array([*numbers, 0.0], np.float64)
    row[COUNT], row[VALUES] = len(values), values.ctypes.data
    row[MASS:MASS + 1].view(np.float64)[0] = mass or 0.0
    return cut(row.ctypes.data, given.ctypes.data, 0)


def test_greedy_keeps_one():
    assert ask(greedy, [3.0, 3.0, 1.0]) == ask(greedy, [3.0]) == 1


@pytest.mark.parametrize("k", [0.0, -1.0])
def test_top_k_that_is_off_keeps_all(k):
    assert ask(top_k, [3.0, 2.0], k, 0.0) == ask(top_k, [3.0, 2.0], k, 1.0) == ALL


def test_top_k_needs_k_tokens_and_one_more_where_equals_stay():
    values = [3.0, 2.0, 2.0, 1.0]
    assert [ask(top_k, values, k, 0.0) for k in (1.0, 3.0, 4.0, 5.0)] == [1, 3, 4, UNKNOWN]
    assert [ask(top_k, values, k, 1.0) for k in (1.0, 2.0, 3.0)] == [1, 3, 3]
    assert [ask(top_k, values, k, 1.0) for k in (4.0, 5.0)] == [UNKNOWN, UNKNOWN]


def test_top_p_stops_before_the_token_that_is_not_needed():
    values = np.log([0.5, 0.25, 0.125])  # of a row whose mass is 1
    for p, want in [(0.0, 1), (0.4, 1), (0.5, 1), (0.5 + 2 * EDGE, 2), (0.75, 2), (0.8, UNKNOWN),
                    (0.99, UNKNOWN), (1.0, ALL)]:
        assert ask(top_p, values, p) == want


def test_top_p_sees_the_mass_beyond_its_list():
    values = np.log([0.5, 0.25, 0.125])
    assert ask(top_p, values, 0.5, mass=np.log(2.0)) == UNKNOWN  # there they are 0.4375 together
    assert ask(top_p, values, 0.24, mass=np.log(2.0)) == 1
    assert ask(top_p, values + 40, 0.75, mass=40.0) == 2


def test_top_p_of_more_than_eight_equal_tokens():
    values = np.full(40, -np.log(40))
    for count in (1, 7, 8, 9, 16, 17, 39):
        assert ask(top_p, values, count / 40) == count


def test_min_p_stops_at_the_first_that_is_too_unlikely():
    values = np.log([0.5, 0.25, 0.125]) + 7
    for p, want in [(0.0, ALL), (1.0, 1), (0.51, 1), (0.499, 2), (0.2499, UNKNOWN)]:
        assert ask(min_p, values, p) == want
