"""Spans lie one after the other, each with its own positions."""

from models_zoo import Held, span

from unspool.models import batch

SPANS = [span([5, 6, 7], rows=1), span([8], Held(length=9)), span([1, 2], Held(length=3), rows=0)]


def test_tokens_and_positions_of_a_ragged_batch():
    assert batch.tokens(SPANS) == [5, 6, 7, 8, 1, 2]
    assert batch.positions(SPANS) == [0, 1, 2, 9, 3, 4]


def test_where_each_span_lies_and_which_rows_it_wants():
    assert [at for _, at in batch.slices(SPANS)] == [slice(0, 3), slice(3, 4), slice(4, 6)]
    assert batch.wanted(SPANS) == [2, 3]
