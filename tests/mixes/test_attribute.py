import math

import numpy as np
import pytest
from mixes_zoo import OUT, Likes, agree, blended, logs, random_rows

from unspool.core.errors import ParameterError
from unspool.mixes import Attribute
from unspool.scorers.classify import train


class Says:
    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def log_probability(self, ids, candidates):
        self.asked.append((list(ids), list(candidates)))
        return self.answer(candidates) if callable(self.answer) else self.answer


@pytest.mark.parametrize("vocab", [3, 10, 50])
@pytest.mark.parametrize(("weight", "top"), [(1, 200), (2.5, 4), (-1, 1)])
def test_by_definition(weight, top, vocab):
    own, text = random_rows(vocab, 1, vocab)[0].tolist(), [4, 5, 6]
    kept = sorted(range(vocab), key=lambda i: (-own[i], i))[:top]
    said = Likes().log_probability(text, range(vocab))
    want = [p + weight * said[i] if i in kept else OUT for i, p in enumerate(logs(own))]
    agree(blended(Attribute(Likes(), weight, top), own, text=text), want)


def test_the_classifier_is_asked_for_the_likeliest_that_are_left():
    says = Says(lambda candidates: [0.0] * len(candidates))
    blended(Attribute(says, 1, 3), [1.0, 3.0, OUT, 3.0], text=[7])
    blended(Attribute(says, 1, 3), [OUT, 3.0, OUT, OUT], text=[7, 8])
    assert says.asked == [([7], [1, 3, 0]), ([7, 8], [1])]


def test_weight_0_and_a_classifier_without_an_opinion_change_nothing():
    own = random_rows(1)[0]
    agree(blended(Attribute(Likes(), 0), own, text=[]), logs(own), 1e-13)
    even = Says(lambda candidates: [math.log(0.5)] * len(candidates))
    agree(blended(Attribute(even), own, text=[]), np.array(logs(own)) + math.log(0.5), 1e-13)


def test_an_impossible_attribute_leaves_tokens_all_the_same():
    never = Says(lambda candidates: [OUT] * len(candidates))
    for weight in (0, 1, -1):
        assert np.isfinite(blended(Attribute(never, weight), [0.0, 1.0], text=[])).all()


@pytest.mark.parametrize("answer", [
    [0.0], [0.0] * 3, [0.0, math.nan], [0.0, math.inf], [0.0, 0.5], [0.0, "yes"], [0.0, None],
    np.zeros((2, 2)), []], ids=repr)
def test_a_classifier_that_gives_something_else_is_refused_by_name(answer):
    with pytest.raises(ParameterError, match=r"attribute: the classifier gave") as caught:
        blended(Attribute(Says(answer)), [0.0, 1.0], text=[])
    assert caught.value.name == "attribute"


def test_a_classifier_that_was_trained_pulls_the_text_its_way():
    def encode(text):
        return list(text.encode())

    bag = train(["aab", "aba", "aaa"], ["ccb", "cbc", "ccc"], encode)
    own = np.zeros(128)
    out = blended(Attribute(bag), own, text=encode("ab"))
    assert out[ord("a")] == out.max() and out[ord("c")] == out.min()
    away = blended(Attribute(bag, -1), own, text=encode("ab"))
    assert away[ord("a")] == away.min()


@pytest.mark.parametrize(("given", "name"), [
    ({"weight": math.nan}, "attribute_weight"), ({"top": 0}, "attribute_top")])
def test_bad_numbers_are_refused_by_name(given, name):
    with pytest.raises(ParameterError, match=name):
        Attribute(Likes(), **given)
