"""DRY: how long each repetition is, where it begins, what a breaker stops; brute force and by hand.
"""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts_zoo import LOGITS, TOKENS, VOCAB, WAYS, text, values

from unspool.engine.shape import shape
from unspool.kernels.reading.logits import logits_of
from unspool.rules import dry, frequency_penalty
from unspool.rules.plain import Seat

TOKEN = st.integers(0, VOCAB - 1)
BREAKERS = st.lists(st.lists(TOKEN, min_size=1, max_size=3).map(tuple), max_size=3).map(tuple)
LARGEST = 3.4028234663852886e38


def taken(rule, ids, vocab=6, dtype=np.float64):
    """What the rule takes off the logits."""
    return {token: -x for token, x in enumerate(
        values([0.0] * vocab, rule, prompt=ids, dtype=dtype).tolist()) if x != 0}


@WAYS
def test_by_hand(dtype):
    """The text is a b c c b c y a b c: c follows "a b c", b follows "c", y follows "b c"."""
    a, b, c, y = range(4)
    ids = [a, b, c, c, b, c, y, a, b, c]
    assert taken(dry(1, 2, 1), ids, dtype=dtype) == {c: 4, b: 1, y: 2}
    assert taken(dry(0.5, 2, 2), ids, dtype=dtype) == {c: 1, y: 0.5}
    assert taken(dry(1, 2, 4), ids, dtype=dtype) == {}
    assert taken(dry(1, 1, 1), ids, dtype=dtype) == {c: 1, b: 1, y: 1}
    assert taken(dry(0, 2, 1), ids, dtype=dtype) == {}


@WAYS
def test_only_the_last_tokens_count(dtype):
    ids = [1, 2, 3, 1, 2, 4, 1, 2]
    assert taken(dry(1, 2, 2), ids, dtype=dtype) == {3: 1, 4: 1}
    assert taken(dry(1, 2, 2, 6), ids, dtype=dtype) == {4: 1}
    assert taken(dry(1, 2, 2, 5), ids, dtype=dtype) == {4: 1}
    assert taken(dry(1, 2, 2, 4), ids, dtype=dtype) == {}
    assert taken(dry(1, 2, 2, 0), ids, dtype=dtype) == {}


@WAYS
def test_a_repetition_ends_at_the_last_breaker(dtype):
    ids = [0, 1, 3, 4, 0, 1]
    assert taken(dry(1, 2, 2), ids, dtype=dtype) == {3: 1}
    assert taken(dry(1, 2, 2, data=((3,),)), ids, dtype=dtype) == {}  # a breaker is not weakened
    assert taken(dry(1, 2, 2, data=((1,),)), ids, dtype=dtype) == {}  # nothing stands behind it
    assert taken(dry(1, 2, 1, data=((0,),)), ids, dtype=dtype) == {3: 1}  # a repetition of 1
    assert taken(dry(1, 2, 2, data=((4, 0),)), ids, dtype=dtype) == {}  # one token behind it
    assert taken(dry(1, 2, 2, data=((3, 4),)), ids, dtype=dtype) == {3: 1}  # two behind it
    assert taken(dry(1, 2, 2, data=((4, 1), (0, 4))), ids, dtype=dtype) == {3: 1}  # not there
    # Two that begin with the same token: the longer one counts.
    assert taken(dry(1, 2, 1, data=((4,), (4, 0))), ids, dtype=dtype) == {3: 1}


def brute(ids, multiplier, base, allowed, last, breakers):
    """{token: penalty}: every suffix of the window against every place in it."""
    window = ids if last < 0 else ids[max(len(ids) - last, 0):]
    limit = len(window)
    for i in range(len(window)):  # the breaker that begins last, the longest of those
        here = [len(b) for b in breakers if tuple(window[i:i + len(b)]) == b]
        limit = len(window) - i - max(here) if here else limit
    longest = {}
    for place in range(1, len(window)):
        for n in range(min(place, limit) + 1):
            if window[place - n:place] == window[len(window) - n:]:
                longest[window[place]] = max(longest.get(window[place], 0), n)
    return {token: multiplier * base ** (n - allowed) for token, n in longest.items()
            if n >= allowed and (token,) not in breakers}


@given(LOGITS, TOKENS, TOKENS, st.integers(0, 3), st.integers(-1, 20), BREAKERS,
       st.sampled_from([np.float64, np.float32]))
def test_it_is_its_definition(row, prompt, written, allowed, last, breakers, dtype):
    rule = dry(0.5, 2.0, allowed, last, data=breakers)
    want = brute(prompt + written, 0.5, 2.0, allowed, last, breakers)
    got = values(row, rule, prompt=prompt, written=written, dtype=dtype)
    assert got.tolist() == [x - want.get(token, 0) for token, x in enumerate(row)]


@given(st.lists(st.integers(0, 1), max_size=60))
def test_a_text_of_two_tokens(ids):
    """Full of repetitions within repetitions."""
    assert taken(dry(1, 1.5, 1), ids, 3, np.float32) == pytest.approx(
        brute(ids, 1, 1.5, 1, -1, ()), rel=1e-6)


@WAYS
def test_nothing_overflows(dtype):
    """The exponent stops where the base to it would leave float32, as in llama.cpp."""
    ids, row = [1] * 3000, [0.0, 50.0]
    got = values(row, dry(0.8, 1.75, 2), prompt=ids, dtype=dtype)
    assert got[1] == pytest.approx(-0.8 * 1.75**158, rel=1e-6)
    assert values(row, dry(1000, 1.75, 2), prompt=ids, dtype=dtype)[1] == pytest.approx(-LARGEST)
    assert values(row, dry(0.5, 1, 2), prompt=ids, dtype=dtype).tolist() == [0, 49.5]


@WAYS
def test_a_long_text_of_few_tokens(dtype):
    """Far longer than the vocabulary; the rows that follow are not touched by it."""
    ids = np.random.default_rng(0).integers(0, 3, 5000).tolist()
    ids += ids[:2000]
    rules = [(dry(1, 1.01, 1, data=((2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2),)),), (frequency_penalty(1),)]
    seats = [Seat(rules[0], (None,), text(ids)), Seat(rules[1], (None,), text([], [1, 1]))]
    [(one, i), (other, j)] = shape(logits_of(np.zeros((2, 4), dtype)), [0, 1], seats)
    assert -one.left(i).values.min() == pytest.approx(1.01 ** 1999, rel=1e-6)
    assert other.left(j).values.tolist() == [0, -2, 0, 0]
