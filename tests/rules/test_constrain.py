"""The rule that applies a constraint: operation and definition, on rows of every form."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unspool.constraints import Vocabulary, choice
from unspool.core.history import history
from unspool.core.prefix import Candidate
from unspool.engine.row import Row
from unspool.kernels.reading.logits import logits_of
from unspool.rules import constrain, repetition_penalty, temperature, top_k
from unspool.rules.constrain import Under
from unspool.rules.plain import Seat


def fact(token):
    return Candidate(token, -1.0, -1.0, 1, -1.0)


def ids_under(ids, vocab):
    """A constraint under which only `ids` may come first."""
    return constrain(data=choice([[i] for i in ids], Vocabulary([b""] * vocab)))


def row_of(values, *rules, dtype=np.float32):
    states = tuple(rule.start((0, 1)) for rule in rules)
    return Row(logits_of(np.asarray([values], dtype)), 0,
               Seat(rules, states, history((0, 1)), (5, 0, 2, 0), True))


VALUES = st.one_of(st.floats(-9, 9, width=32), st.sampled_from([0.0, 1.0, -np.inf]))
BEFORE = [(), (temperature(0.7),), (top_k(5),), (temperature(2.0), top_k(9)),
          (repetition_penalty(1.3),), (top_k(7), repetition_penalty(1.3), temperature(0.7))]


@settings(max_examples=80, deadline=None)
@given(arrays(np.float32, st.integers(1, 70), elements=VALUES), st.data())
def test_only_the_allowed_tokens_are_left_with_the_values_they_had(values, data):
    """On the model's row, on a divided one, on a changed copy and on a list; and by definition."""
    ids = data.draw(st.sets(st.integers(0, len(values) - 1), min_size=1))
    before = data.draw(st.sampled_from(BEFORE))
    if not np.isfinite(values).any() or len(values) < 2:
        return
    for dtype in (np.float32, np.float64):
        entering = row_of(values, *before, dtype=dtype).shaped
        leaving = row_of(values, *before, ids_under(ids, len(values)), dtype=dtype)
        want = dict(zip(entering.ids.tolist(), entering.values.tolist(), strict=True))
        want = {i: v for i, v in want.items() if i in ids}
        left = leaving.shaped
        got = dict(zip(left.ids.tolist(), left.values.tolist(), strict=True))
        assert leaving.empty == (not want) and got.keys() == want.keys()
        assert [got[i] for i in sorted(want)] == pytest.approx([want[i] for i in sorted(want)])
        if want:
            assert leaving.pick[0] in want
            assert np.exp(left.values - left.norm).sum() == pytest.approx(1)


def test_the_list_is_in_order_for_what_comes_after():
    values = [1.0, 3.0, 3.0, 2.0, -np.inf, 5.0]
    for dtype in (np.float32, np.float64):
        left = row_of(values, ids_under({0, 1, 2, 3, 4}, 6), top_k(3), dtype=dtype).shaped
        assert sorted(left.ids.tolist()) == [1, 2, 3]
        assert row_of(values, ids_under({0, 1, 2}, 6), dtype=dtype).top(9) == [
            (1, pytest.approx(-0.7586, abs=1e-4)), (2, pytest.approx(-0.7586, abs=1e-4)),
            (0, pytest.approx(-2.7586, abs=1e-4))]


@pytest.mark.parametrize("count", [500, 3000])
def test_many_ids_of_a_large_vocabulary(count):
    values = np.random.default_rng(0).normal(size=3000).astype(np.float32)
    row = row_of(values, ids_under(range(count), 3000))
    order = np.argsort(-values[:count], kind="stable").tolist()
    assert [token for token, _ in row.top(count)] == order
    left = row.shaped
    assert dict(zip(left.ids.tolist(), left.values.tolist(), strict=True)) == dict(
        enumerate(values[:count].tolist()))


def test_ids_beyond_the_row_are_no_tokens():
    """A row may have fewer tokens than the words that were counted on."""
    for dtype in (np.float32, np.float64):
        assert row_of([1.0, 2.0], ids_under({1, 700}, 1000), dtype=dtype).shaped.ids == [1]


def test_when_nothing_is_left_the_error_names_it():
    row = row_of([-np.inf, 1.0], ids_under({0}, 2))
    assert row.empty and "constrain(choice=[[0]]) removed every one" in row.why_empty()


def test_what_it_remembers_is_a_fold():
    made = choice([[0, 1], [0, 2, 2]], Vocabulary([b""] * 4))
    rule = constrain(data=made)
    state = rule.start((3, 3, 3))  # the prompt is no part of the choice
    assert state == Under(made, made.start())
    behind = rule.after(state, 0, fact(0))
    assert behind.allowed.tolist() == [1, 2] and state.allowed.tolist() == [0]
    assert rule.after(behind, 3, fact(3)).allowed.size == 0


def test_equal_constraints_make_equal_rules():
    words = Vocabulary([b"a", b"b"])
    one, same, other = (constrain(data=choice(texts, words)) for texts in (["a"], {"a"}, ["b"]))
    assert one == same != other and hash(one) == hash(same)


def test_two_constraints_hold_together():
    """Each with its own state, read by its own address."""
    rules = ids_under({0, 1, 2}, 5), temperature(0.5), ids_under({2, 1, 4}, 5)
    for dtype in (np.float32, np.float64):
        assert sorted(row_of([0.0] * 5, *rules, dtype=dtype).shaped.ids.tolist()) == [1, 2]
