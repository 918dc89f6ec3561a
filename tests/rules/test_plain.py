"""Rows shaped by definitions: the answers, and rows of which nothing or everything is left."""
import numpy as np
import pytest
from rules_zoo import plainly

from unspool.kernels.reading.noise import gumbel
from unspool.rules import temperature, top_k
from unspool.rules.plain import Defined, Seat, define

ROWS = np.array([[0.5, 2.0, -1.0, 2.0], [1.0, -np.inf, 3.0, 0.0], [-np.inf, 1.0, 1.0, 1.0]])
PLACES = [(5, 0, 1, 0), (-6, 2**33 + 1, 2, 0), (2**64 - 1, 0, 3, 6)]


def defined(*rules, rows=ROWS):
    seats = [Seat(rules, (None,) * len(rules), None, place, True) for place in PLACES[:len(rows)]]
    return Defined(rows.copy(), seats)


@pytest.mark.parametrize("rules", [
    (), (temperature(0.5),), (top_k(2),), (temperature(9), top_k(3))])
def test_all_answers_agree_with_what_is_left(rules):
    group = defined(*rules)
    for i, place in enumerate(PLACES):
        left = group.left(i)
        logs = dict(zip(left.ids.tolist(), (left.values - left.norm).tolist(), strict=True))
        assert sum(np.exp(list(logs.values()))) == pytest.approx(1)
        token, processed = group.pick(i)
        assert token == left.ids[np.argmax(left.values + gumbel(*place, left.ids))]
        assert processed == pytest.approx(logs[token]) and not group.empty(i)
        assert [group.processed(i, t) for t in range(4)] == pytest.approx(
            [logs.get(t, -np.inf) for t in range(4)])
        order = sorted(logs, key=lambda t, logs=logs: (-logs[t], t))
        assert [t for t, _ in group.top(i, 3)] == order[:3] == [t for t, _ in group.top(i, 9)][:3]


def test_rows_of_one_call_have_their_own_numbers():
    seats = [plainly(top_k(k)) for k in (1, 2, 3)]
    assert [Defined(ROWS.copy(), seats).left(i).ids.tolist() for i in range(3)] == [
        [1], [0, 2], [1, 2, 3]]
    one = define(ROWS, 0, seats)
    assert one[0].tolist() == [-np.inf, 2.0, -np.inf, -np.inf]


def test_nothing_is_left_of_nothing():
    group = defined(temperature(0.5), top_k(2), rows=np.full((2, 3), -np.inf))
    assert group.empty(0) and group.left(1).ids.tolist() == [] and group.norms[0] == -np.inf
    assert group.top(0, 2) == []
