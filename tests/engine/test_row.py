"""One row before, after and between its rules; the same row and seat give the same bits."""
import numpy as np
import pytest
from rules_zoo import rows_of, seat_of

from unspool.engine.row import Row
from unspool.kernels.reading.logits import logits_of
from unspool.kernels.reading.plain import log_sum_exp
from unspool.rules import allowed_ids, min_p, mirostat_2, repetition_penalty, temperature, top_k
from unspool.rules.plain import Seat

WAYS = pytest.mark.parametrize("dtype", [np.float32, np.float64])
RULES = (repetition_penalty(1.3), temperature(0.7), top_k(20), mirostat_2(3.0, 0.5), min_p(0.05))
SIZE = 90


def row_of(dtype, rules=RULES, kind="normal"):
    """The second of two rows."""
    return Row(logits_of(rows_of(kind, 2, SIZE).astype(dtype)), 1, seat_of(rules, SIZE))


def told(row):
    left = row.shaped
    return left.ids.tolist(), left.values.tolist(), left.norm, row.pick, row.top(9)


@WAYS
def test_a_row_before_its_rules(dtype):
    row = row_of(dtype)
    logits = rows_of("normal", 2, SIZE)[1].astype(np.float64)
    logprobs = logits - log_sum_exp(logits)
    assert row.vocab == SIZE and row.raw.tolist() == logits.tolist()
    assert row.norm == pytest.approx(log_sum_exp(logits)[0], abs=1e-12)
    best = np.argsort(-logits, kind="stable")[:4]
    assert [t for t, _ in row.likeliest(4)] == best.tolist()
    assert [v for _, v in row.likeliest(4)] == pytest.approx(logprobs[best], abs=1e-12)


@WAYS
def test_the_facts_of_a_token_before_and_after(dtype):
    row = row_of(dtype)
    logprobs, left = row.raw - row.norm, row.shaped
    order = np.argsort(-row.raw, kind="stable")
    logs = dict(zip(left.ids.tolist(), (left.values - left.norm).tolist(), strict=True))
    for token in (0, SIZE - 1, row.pick[0], int(order[0])):
        fact = row.candidate(token)
        assert (fact.token, fact.rank) == (token, 1 + order.tolist().index(token))
        assert fact.logprob == pytest.approx(logprobs[token], abs=1e-12)
        assert fact.peak == pytest.approx(logprobs.max(), abs=1e-12)
        assert fact.processed == pytest.approx(logs.get(token, -np.inf), abs=1e-12)
    assert row.pick[1] == row.candidate(row.pick[0]).processed
    for token in (-1, SIZE):
        with pytest.raises(IndexError, match="outside the vocabulary"):
            row.candidate(token)


@WAYS
def test_between_its_rules_a_row_is_that_of_a_shorter_recipe(dtype):
    row = row_of(dtype)
    for count in range(len(RULES) + 1):
        part, seat = row.upto(count), row.seat
        own = Row(row.logits, 1, Seat(RULES[:count], seat.states[:count], seat.history, seat.place,
                                      True))
        assert told(part) == told(own)
    assert told(row.upto(len(RULES))) == told(row)
    sizes = [len(row.upto(count).shaped.ids) for count in range(len(RULES) + 1)]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] == SIZE and sizes[3] == 20


@WAYS
def test_a_copy_outlives_its_forward_and_its_text(dtype):
    values = rows_of("normal", 2, SIZE).astype(dtype)
    row = Row(logits_of(values), 1, seat_of(RULES, SIZE))
    copy, want = row.alone(), told(row)
    values[:] = 0
    text = row.seat.history
    for token in range(40):
        text = text.extend(token)
    assert told(copy) == want and copy.raw.any()


@WAYS
def test_what_emptied_a_row_is_named(dtype):
    row = row_of(dtype, (temperature(2.0), top_k(3), allowed_ids(data=(2**20,))))
    assert row.empty and "top_k(3) and allowed_ids" in row.why_empty()
    assert "loosen one of them" in row.why_empty()
    row = row_of(dtype, (temperature(2.0), allowed_ids(data=(2**20,))))
    assert row.empty and row.why_empty().endswith("removed every one; loosen it")
