"""Noise from a key: the law of the picks, where ordinary noise is used, and exact detection."""
from math import exp

import marks_zoo
import numpy as np
import pytest
from marks_zoo import NEW, PROMPT

from unspool.core.history import history
from unspool.engine.shape import shape
from unspool.kernels.reading.logits import logits_of
from unspool.rules import temperature, top_k
from unspool.rules.plain import Seat
from unspool.rules.rule import place_of_noise
from unspool.rules.watermarks import detect, watermark_of
from unspool.rules.watermarks.gumbel import Source, above_gamma

KEY = 1234
PLACE = (77, 2, 30, 0)


def mark(key=KEY, width=4):
    return watermark_of({"kind": "gumbel", "hashing_key": key, "context_width": width}, 0)


def place_after(rule, *tokens):
    return place_of_noise((temperature(1), rule), history(tokens), PLACE)


# ── the place of the noise ───────────────────────────────────────────────────────────────────────
def test_the_seed_is_the_keyed_hash_of_the_last_tokens():
    """Written down once: who marked texts with it must find them for ever."""
    seed = 15733164113141980601
    assert Source(KEY, 3).seed([1, 2, 70000]) == seed
    assert place_after(mark(width=3), 9, 9, 1, 2, 70000) == (seed, 2, 0, 0)


def test_only_the_last_tokens_count():
    one, other = place_after(mark(), 1, 2, 3, 4, 5), place_after(mark(), 9, 2, 3, 4, 5)
    assert one == other != PLACE
    assert place_after(mark(), 1, 2, 3, 4, 6) != one != place_after(mark(KEY + 1), 1, 2, 3, 4, 5)


def test_a_context_that_came_before_and_one_too_short_get_ordinary_noise():
    assert place_after(mark(), 1, 2, 3) == PLACE
    assert place_after(mark(), 1, 2, 3, 4) != PLACE
    assert place_after(mark(), 1, 2, 3, 4, 1, 2, 3, 4) == PLACE
    assert place_after(mark(), 4, 4, 4, 4) != PLACE
    assert place_after(mark(), 4, 4, 4, 4, 4) == PLACE  # it may overlap itself
    assert place_after(mark(width=1), 1, 2, 1) == PLACE
    assert place_after(mark(width=1), 1, 2, 3) != PLACE


def test_a_text_that_went_on_from_here_does_not_count():
    """The array of a history may hold the tokens of a longer text."""
    short = history((1, 2, 3, 4))
    longer = short.extend(1).extend(2).extend(3).extend(4)
    assert longer.tokens is short.tokens
    assert place_of_noise((mark(),), short, PLACE) != PLACE
    assert place_of_noise((mark(),), longer, PLACE) == PLACE
    longer.extend(5)  # nothing holds the array


# ── the law ──────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_over_keys_the_picks_are_draws_from_the_distribution(dtype):
    keys, row = 20_000, np.random.default_rng(5).normal(0, 1.5, 12).astype(dtype)
    text, seats = history((5, 3, 8, 1)), []
    for key in range(keys):
        rules = (temperature(0.8), top_k(9), mark(key))
        seats.append(Seat(rules, (None,) * 3, text, place_of_noise(rules, text, PLACE), True))
    groups = shape(logits_of(row[None]), [0] * keys, seats)
    picks = np.bincount([group.pick(i)[0] for group, i in groups], minlength=12)
    group, place = groups[0]
    left = group.left(place)
    want = keys * np.exp(left.values - left.norm)
    assert picks.sum() == picks[left.ids].sum()
    assert ((picks[left.ids] - want) ** 2 / want).sum() < 26.1  # chi-square, 8 degrees: p = 0.001


# ── detection ────────────────────────────────────────────────────────────────────────────────────
def test_marked_text_is_found_and_other_text_is_not():
    rules = (temperature(0.9), mark())
    ids = marks_zoo.text(*rules)
    found = detect(ids, mark())
    assert found.marked and found.z > 4 and found.p_value < 1e-6
    assert found.counted > 0.9 * NEW
    for other in (detect(ids, mark(KEY + 1)), detect(ids, mark(width=3)),
                  detect(marks_zoo.text(temperature(0.9)), mark())):
        assert not other.marked and abs(other.z) < 4 and other.p_value > 1e-3
    assert detect(ids, mark(), context=PROMPT).counted == found.counted + 4


def test_the_score_has_the_law_it_is_judged_by():
    """The p-values of unmarked texts are uniform (Kolmogorov and Smirnov, p = 0.001)."""
    draw, rule = np.random.default_rng(3), mark()
    values = np.sort([detect(draw.integers(0, 50, 24).tolist(), rule).p_value for _ in range(250)])
    steps = np.arange(251) / 250
    distance = max((steps[1:] - values).max(), (values - steps[:-1]).max())
    assert distance < 1.95 / np.sqrt(250)


@pytest.mark.parametrize("x", [0.01, 1.0, 3.5, 40.0])
def test_the_tail_of_the_gamma_law(x):
    assert above_gamma(x, 1) == pytest.approx(exp(-x))
    assert above_gamma(x, 3) == pytest.approx(exp(-x) * (1 + x + x * x / 2))


def test_the_tail_of_long_texts():
    assert above_gamma(2000.0, 2000) == pytest.approx(0.5, abs=0.01)
    assert above_gamma(5000.0, 2000) == pytest.approx(0, abs=1e-300)
    assert above_gamma(100.0, 2000) == pytest.approx(1)


def test_each_context_counts_once():
    ids = marks_zoo.text(mark())
    assert detect(ids + ids, mark()).counted <= detect(ids, mark()).counted + 4
    assert detect([7] * 500, mark()).counted == 1
    assert detect(ids, mark(), context=(*PROMPT, *ids)).counted <= 4


def test_nothing_to_count_is_no_mark():
    found = detect([1, 2, 3, 4], mark())
    assert (found.counted, found.z, found.p_value, found.marked) == (0, 0.0, 1.0, False)


def test_every_choice_is_marked_and_another_text():
    found = marks_zoo.texts(mark(), n=3)
    assert len({tuple(ids) for ids in found}) == 3
    assert detect(found[0], mark()).marked and not detect(found[2], mark()).marked
    assert all(detect(ids, mark(), choices=3).marked for ids in found)
    plain = detect(marks_zoo.text(temperature(1)), mark(), choices=3)
    assert not plain.marked and plain.p_value > 1e-3


def test_the_seed_of_the_request_does_not_matter_until_a_context_returns():
    assert marks_zoo.text(mark(), seed=1) == marks_zoo.text(mark(), seed=2)
    one, other = (marks_zoo.text(mark(), seed=seed, prompt=(1,)) for seed in (1, 2))
    assert one != other


def test_drafts_and_definitions_write_the_same_text():
    rules = (temperature(0.8), top_k(50), mark(width=2))
    with_drafts, known = marks_zoo.drafted(*rules, new=60)
    assert with_drafts == known == marks_zoo.text(*rules, new=60, dtype="float64")
