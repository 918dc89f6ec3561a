"""Boosts by brute force over phrases and texts, and what is looked at to give them."""
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixes_zoo import OUT, agree, blended, random_rows

from unspool.core.errors import ParameterError
from unspool.core.schedule import Schedule, at
from unspool.mixes import Boost, styles

FEW = st.integers(0, 2)  # so that phrases overlap, with each other and with themselves
PHRASE = st.tuples(st.lists(FEW, min_size=1, max_size=5).map(tuple), st.integers(-3, 3))
PHRASES = st.lists(PHRASE, min_size=1, max_size=6).map(tuple)


def by_definition(phrases, text, vocab):
    """Each phrase once for each token that it begins with, or goes on with at the text's end."""
    gains = [0.0] * vocab
    for ids, weight in phrases:
        tokens = {ids[k] for k in range(len(ids)) if k <= len(text)
                  and list(ids[:k]) == list(text[len(text) - k:])}
        for token in tokens:
            gains[token] += weight
    return gains


@given(PHRASES, st.lists(FEW, max_size=9))
def test_by_definition(phrases, text):
    agree(blended(Boost(phrases), [0.0] * 4, text=text), by_definition(phrases, text, 4), 1e-12)


def test_by_hand():
    new_york, new_age = ((5, 6, 7), 2.0), ((5, 8), 1.0)
    boost = Boost((new_york, new_age))

    def gains(*text):
        out = blended(boost, [0.0] * 10, text=list(text))
        return {i: x for i, x in enumerate(out) if x}

    assert gains() == {5: 3.0}
    assert gains(1, 5) == {5: 3.0, 6: 2.0, 8: 1.0}
    assert gains(5, 6) == {5: 3.0, 7: 2.0}
    assert gains(5, 6, 7) == {5: 3.0}  # it may come again
    assert gains(5, 6, 1) == {5: 3.0}  # it was abandoned
    assert gains(6) == {5: 3.0}


def test_a_phrase_that_overlaps_itself_counts_once():
    out = blended(Boost((((1, 1, 1, 2), 1.0),)), [0.0] * 3, text=[1, 1, 1])
    assert out.tolist() == [0.0, 1.0, 1.0]


def test_only_the_last_tokens_of_a_text_are_looked_at():
    class Text:
        def __len__(self):
            return 10**9

        def __getitem__(self, part):
            assert part == slice(10**9 - 2, None)
            return [5, 6]

    assert blended(Boost((((5, 6, 7), 2.0),)), [0.0] * 8, text=Text())[7] == 2.0


def test_gain_is_a_factor_and_may_be_a_schedule():
    phrases = (((0,), 1.0), ((2, 1), -0.5))
    own = random_rows(1, vocab=4)[0]
    agree(blended(Boost(phrases, 3.0), own, text=[2]) - own, [3.0, -1.5, -1.5, 0.0], 1e-12)
    assert blended(Boost(phrases, 0), own, text=[2]).tolist() == own.tolist()
    falling = Boost(phrases, Schedule(((0, 2.0), (4, 0.0))))
    now = at(falling, 1)
    assert now == Boost(phrases, 1.5)
    assert now.automaton is falling.automaton  # built once


def test_other_phrases_mean_another_automaton():
    from dataclasses import replace
    other = replace(Boost((((0,), 1.0),)), phrases=(((1,), 1.0),))
    assert blended(other, [0.0, 0.0], text=[]).tolist() == [0.0, 1.0]


def test_a_token_ruled_out_stays_out_and_an_unknown_id_gains_nothing():
    out = blended(Boost((((0,), 5.0), ((99,), 5.0))), [OUT, 1.0], text=[])
    assert out.tolist() == [OUT, 1.0]


@pytest.mark.parametrize("phrases", [
    (), (((), 1.0),), (((-1,), 1.0),), (((1.0,), 1.0),), (((True,), 1.0),), (((1,), math.nan),),
    (((1,), math.inf),), (((1,), 1e9),), (((1,), "much"),), (((1,), Schedule(((0, 1.0),))),)],
    ids=repr)
def test_bad_phrases_are_refused_by_name(phrases):
    with pytest.raises(ParameterError, match="boosts: ") as caught:
        Boost(phrases)
    assert caught.value.name == "boosts"


def test_styles_join_their_phrases():
    sets = {"formal": [[1, 2], [3]], "rude": [[4]], "unused": [[5]]}
    boost = styles(sets, {"rude": -2.0, "formal": 0.5}, 2.0)
    assert boost == Boost((((1, 2), 0.5), ((3,), 0.5), ((4,), -2.0)), 2.0)
    assert np.flatnonzero(blended(boost, [0.0] * 6, text=[])).tolist() == [1, 3, 4]


@pytest.mark.parametrize(("sets", "weights"), [
    ({"formal": [[1]]}, {"informal": 1.0}), ({}, {"formal": 1.0}), ({"formal": []}, {"formal": 1}),
    ({"formal": [[1]]}, {})], ids=repr)
def test_a_style_that_is_not_there_is_refused_by_name(sets, weights):
    with pytest.raises(ParameterError, match="boosts: "):
        styles(sets, weights)
