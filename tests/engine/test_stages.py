"""What each rule did: hand-computed, every probability accounted for, and the same bits again."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rules_zoo import EVERY, KINDS_OF_ROWS, logs, rows_of, seat_of

from unspool.core.history import history
from unspool.engine.row import Row
from unspool.engine.shape import shape
from unspool.engine.stages import Tokens, stages, variation
from unspool.kernels.reading.logits import logits_of
from unspool.rules import greedy, min_p, repetition_penalty, temperature, top_k, top_p
from unspool.rules.plain import Seat

DTYPES = (np.float32, np.float64)
HALVES = np.log([0.125, 0.5, 0.125, 0.25])


def row_of(values, *rules, dtype=np.float64, text=None):
    seat = Seat(rules, (None,) * len(rules), text and history(text), (3, 0, 5, 0), True)
    return Row(logits_of(np.asarray(values, dtype)[None]), 0, seat)


@pytest.mark.parametrize("dtype", DTYPES)
def test_cuts_by_hand(dtype):
    found = stages(row_of(HALVES, top_k(3), top_p(0.6), dtype=dtype))
    cut, nucleus = found
    assert (cut.rule, cut.name, cut.before, cut.after) == ("top_k(3)", "top_k", 4, 3)
    assert cut.removed.ids.tolist() == [2] and cut.mass == pytest.approx(0.125)
    assert cut.cutoff == pytest.approx((0.125, 0.125))
    assert (cut.entropy_bits_before, cut.entropy_bits) == pytest.approx(
        (1.75, math.log2(7) - 10 / 7))
    # of sevenths: 4, 2 and 1; the first two have 6/7 of the mass
    assert (nucleus.before, nucleus.after) == (3, 2)
    assert list(nucleus.removed) == [(0, pytest.approx(1 / 7))]
    assert nucleus.raw_mass == pytest.approx(0.125) and nucleus.mass == pytest.approx(1 / 7)
    assert nucleus.moved == pytest.approx(0, abs=1e-7)
    assert found.raw_mass == pytest.approx(0.75)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_temperature_moves_and_removes_nothing(dtype):
    [stage] = stages(row_of(HALVES, temperature(0.5), dtype=dtype))
    squares = np.array([1, 16, 1, 4]) / 22
    assert stage.moved == pytest.approx(np.abs(squares - np.exp(HALVES)).sum() / 2, abs=1e-6)
    assert stage.entropy_bits == pytest.approx(-(squares * np.log2(squares)).sum(), abs=1e-6)
    assert (len(stage.removed), stage.mass, stage.raw_mass, stage.cutoff) == (0, 0, 0, None)


def test_a_penalty_moves(text=(1, 0)):
    [stage] = stages(row_of([1.0, 2.0, 0.0, 0.0], repetition_penalty(2.0), text=text))
    before, after = np.exp([1, 2, 0, 0]), np.exp([0.5, 1, 0, 0])
    moved = np.abs(before / before.sum() - after / after.sum()).sum() / 2
    assert stage.moved == pytest.approx(moved)


def test_greedy_removes_all_but_one():
    [stage] = stages(row_of(HALVES, greedy()))
    assert stage.removed.ids.tolist() == [3, 0, 2]  # the likeliest first, then the lower id
    assert stage.mass == pytest.approx(0.5) and stage.entropy_bits == 0
    assert stage.cutoff == pytest.approx((0.5, 0.25))


def test_stages_by_name_and_by_place():
    found = stages(row_of(HALVES, temperature(0.5), top_k(3), temperature(2.0)))
    assert found["top_k"] is found[1] and found["temperature"] is found[0]
    assert "top_k" in found and "top_p" not in found and found[2] in found
    assert found.keys() == ["temperature", "top_k", "temperature"] and len(found[1:]) == 2
    with pytest.raises(KeyError, match="no stage 'top_p': there are temperature, top_k"):
        found["top_p"]
    assert len(stages(row_of(HALVES))) == 0 and stages(row_of(HALVES)).raw_mass == 1


def test_a_token_that_comes_back_is_given_back(registry):
    from unspool.rules import rule

    @rule()
    def ban(rows):
        return rows.drop(rows.xp.arange(4) == 1)

    @rule()
    def only(rows):
        return np.where(np.arange(4) == 1, 0.0, -np.inf) + np.zeros_like(rows.values)

    banned, forced = stages(row_of(HALVES, ban(), only()))
    assert banned.raw_mass == pytest.approx(0.5)
    assert forced.raw_mass == pytest.approx(0.5 - 0.5)
    assert list(forced.restored) == [(1, 1.0)] and forced.moved == 1.0
    assert forced.cutoff is None and forced.mass == pytest.approx(1)


def test_tokens_too_unlikely_for_a_float_are_still_there():
    [cut] = stages(row_of([0.0, -1000.0, -2000.0], top_k(2)))
    assert (cut.before, cut.after, cut.removed.ids.tolist()) == (3, 2, [2])


def test_what_is_removed_reads_as_pairs():
    tokens = Tokens(np.array([7, 3]), np.array([0.5, 0.25]))
    assert list(tokens) == [(7, 0.5), (3, 0.25)] and list(tokens[1:]) == [(3, 0.25)]
    assert 3 in tokens and 4 not in tokens
    assert repr(tokens) == "Tokens(7: 0.5, 3: 0.25; 2)"


def test_variation():
    assert variation(np.array([2.0, 2.0]), np.array([1.0, 0.0])) == 0.5
    assert variation(np.zeros(2), np.zeros(2)) == 0 and variation(np.zeros(2), np.ones(2)) == 1


RECIPES = st.lists(st.sampled_from(EVERY), max_size=5).map(tuple)


@settings(max_examples=150, deadline=None)
@given(RECIPES, st.sampled_from(KINDS_OF_ROWS), st.integers(12, 300), st.integers(0, 9),
       st.sampled_from(DTYPES))
def test_every_probability_is_accounted_for(rules, kind, size, seed, dtype):
    seat = seat_of(rules, size, seed)
    row = Row(logits_of(rows_of(kind, 1, size, seed).astype(dtype)), 0, seat)
    found = stages(row)
    assert sum(stage.raw_mass for stage in found) + found.raw_mass == pytest.approx(1, abs=1e-6)
    count = np.isfinite(row.raw).sum()
    for stage in found:
        assert stage.before == count
        count += len(stage.restored) - len(stage.removed)
        assert stage.after == count
        assert stage.mass == pytest.approx(stage.removed.probs.sum())
        assert -1e-9 <= stage.moved <= 1 + 1e-9
    assert count == len(row.shaped.ids)
    if not row.empty:
        assert np.exp(row.shaped.values - row.shaped.norm).sum() == pytest.approx(1)


@settings(max_examples=60, deadline=None)
@given(st.lists(RECIPES, min_size=2, max_size=4), st.integers(0, 9), st.sampled_from(DTYPES))
def test_a_stored_row_gives_the_same_bits_again(recipes, seed, dtype):
    """Shaped in company while the forward lasted, and alone from the stored copy."""
    size = 200
    rows = rows_of("normal", len(recipes), size, seed).astype(dtype)
    logits = logits_of(rows)
    seats = [seat_of(rules, size, seed, wanted=True) for rules in recipes]
    for i, (group, place) in enumerate(shape(logits, range(len(seats)), seats)):
        stored = Row(logits, i, seats[i], (group, place)).alone()
        last = stored.upto(len(recipes[i]))
        for again in (stored, last):
            left, want = again.shaped, group.left(place)
            assert np.array_equal(logs(left, size), logs(want, size))
            assert stored.empty or again.pick == group.pick(place)


def test_a_stored_row_does_not_see_how_the_text_goes_on():
    text = history([0, 1])
    seat = Seat((repetition_penalty(2.0),), (None,), text, (3, 0, 2, 0), True)
    row = Row(logits_of(np.array([[1.0, 2.0, 3.0]])), 0, seat).alone()
    for token in [2] * 1000:
        text = text.extend(token)
    assert row.seat.history.everything == [0, 1]
    assert row.seat.history.address != text.address


def test_least_likely_kept_and_likeliest_removed_are_neighbours():
    row = row_of(rows_of("normal", 1, 100)[0], min_p(0.2))
    [cut] = stages(row)
    probs = np.sort(np.exp(row.raw - row.norm))[::-1]
    assert cut.cutoff == pytest.approx((probs[cut.after - 1], probs[cut.after]))


@pytest.fixture
def registry():
    from unspool.rules import KINDS

    before = dict(KINDS)
    yield
    KINDS.clear()
    KINDS.update(before)
