"""What every utility on texts must obey: chrF, chrF++ and BLEU."""
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scorers_zoo import piece, saying

from unspool.core.branch import Ended
from unspool.scorers import UTILITIES

NAMES = ["chrf", "chrf++", "bleu"]
EVERY = pytest.mark.parametrize("name", NAMES)
WORDS = st.sampled_from(["a", "b", "ab", "a,b", "3.5", "(x)", "é", "日本", "🦊", "-", "the", "."])
TEXTS = st.lists(WORDS, max_size=8).map(" ".join) | st.text(max_size=12)


def table(name, texts):
    return UTILITIES[name](piece).table(saying(*texts))


@EVERY
@settings(max_examples=100)
@given(texts=st.lists(TEXTS, max_size=5))
@example(texts=[])
@example(texts=["", "", "a"])
def test_a_table_is_its_pairs_bit_for_bit(name, texts):
    found = table(name, texts)
    assert found == [[table(name, [one, other])[0][1] for other in texts] for one in texts]
    assert all(0 <= score <= 1 for row in found for score in row)


@EVERY
@given(texts=st.lists(TEXTS, min_size=1, max_size=6), order=st.randoms(use_true_random=False))
def test_another_order_gives_the_same_table_in_that_order(name, texts, order: random.Random):
    places = order.sample(range(len(texts)), len(texts))
    found = table(name, texts)
    assert table(name, [texts[i] for i in places]) == [[found[i][j] for j in places]
                                                       for i in places]


@EVERY
@given(text=TEXTS)
def test_a_text_is_its_own_best(name, text):
    assert table(name, [text]) == [[1.0 if text.split() else 0.0]]


@EVERY
def test_nothing_has_nothing_in_common(name):
    found = table(name, ["", "blue sky", " \n"])
    assert [found[i][j] for i, j in [(0, 0), (0, 1), (0, 2), (1, 0), (2, 1), (2, 2)]] == [0.0] * 6


@given(one=TEXTS, other=TEXTS)
def test_chrf_weighs_recall_twice(one, other):
    """Its two directions are F2 of the same precision and recall, in exchanged roles."""
    forward, back = table("chrf", [one, other])[0][1], table("chrf", [one, other])[1][0]
    assert (forward == 0) == (back == 0)
    if len("".join(one.split())) < len("".join(other.split())) and forward:
        assert forward <= back + 1e-12


def test_words_count_in_chrf_plus_plus_alone():
    texts = ["ab cd", "a bcd"]
    assert table("chrf", texts)[0][1] == 1.0
    assert table("chrf++", texts)[0][1] < 1.0


def test_bytes_that_a_stop_cuts_off_do_not_count():
    cut, plain = saying("blue sky###", "blue sky")
    cut.ended = Ended("stop", "###", 3)
    assert UTILITIES["chrf"](piece).table([cut, plain])[0][1] == 1.0


def test_they_are_values():
    assert UTILITIES["chrf++"](piece) == UTILITIES["chrf++"](piece) != UTILITIES["chrf"](piece)
    assert len({hash(make(piece)) for make in UTILITIES.values()}) == 4
    assert repr(UTILITIES["chrf++"](piece)) == "ChrF(word_order=2)"
    assert [make(piece).states for make in UTILITIES.values()] == [False, False, False, True]
