"""The bag against Bayes' theorem written out, and against texts it has not seen."""
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unspool.core.errors import ParameterError
from unspool.scorers import Bag, train

GOOD = ["a fine day", "what a lovely fine walk", "a lovely song"]
BAD = ["a grim day", "what a dull grim walk", "a dull song", "grim and grey"]


def encode(text):
    return list(text.encode())


def words(text):
    return [{"fine": 1, "lovely": 2, "grim": 3, "dull": 4, "a": 5}.get(w, 6) for w in text.split()]


def defined(positive, negative, ids):
    """log P(positive | ids) with every gram of the text multiplied in."""
    def grams(ids, size):
        return [tuple(ids[i:i + size]) for i in range(len(ids) - size + 1)]

    joint = []
    for texts in (positive, negative):
        log = math.log(len(texts) / (len(positive) + len(negative)))
        for size in (1, 2):
            own = [gram for text in texts for gram in grams(text, size)]
            seen = {gram for text in [*positive, *negative] for gram in grams(text, size)}
            log += sum(math.log((own.count(gram) + 1) / (len(own) + len(seen)))
                       for gram in grams(ids, size) if gram in seen)
        joint.append(log)
    return joint[0] - max(joint) - math.log(sum(math.exp(j - max(joint)) for j in joint))


IDS = st.lists(st.integers(0, 3), max_size=6)
TEXTS = st.lists(IDS, min_size=1, max_size=4)


@given(TEXTS, TEXTS, IDS)
def test_it_is_bayes_theorem(positive, negative, ids):
    bag = train([chr(97 + i) for i in range(len(positive))],
                [chr(65 + i) for i in range(len(negative))],
                lambda name: positive[ord(name) - 97] if name >= "a" else negative[ord(name) - 65])
    found = bag.log_probability(ids, range(5))
    assert found == pytest.approx([defined(positive, negative, [*ids, token])
                                   for token in range(5)], abs=1e-9)


def test_it_prefers_what_it_was_taught():
    bag = train(GOOD, BAD, words)
    scores = dict(zip(["fine", "lovely", "grim", "dull"],
                      bag.log_probability(words("a"), [1, 2, 3, 4]), strict=True))
    assert min(scores["fine"], scores["lovely"]) > max(scores["grim"], scores["dull"])


def test_it_tells_texts_apart_that_it_has_not_seen():
    bag = train(GOOD, BAD, encode)

    def probability(text):
        *ids, last = encode(text)
        return math.exp(bag.log_probability(ids, [last])[0])

    assert probability("a lovely fine song") > 0.9
    assert probability("a dull and grim song") < 0.1


def test_pairs_count():
    """Each token is as frequent on both sides; only their order tells."""
    bag = train(["ab", "ab"], ["ba", "ba"], encode)
    assert bag.log_probability([97], [98])[0] > bag.log_probability([98], [97])[0]


def test_a_long_text_is_sure_and_still_a_number():
    bag = train(["a"], ["b"], encode)
    good, bad = (bag.log_probability([token] * 10_000, [token])[0] for token in (97, 98))
    assert -1e-300 <= good <= 0 and -math.inf < bad < -1000


def test_the_order_of_the_texts_does_not_matter():
    bag = train(GOOD, BAD, encode)
    other = train(GOOD[::-1], BAD[::-1], encode)
    assert bag == other and hash(bag) == hash(other)
    assert repr(Bag((), 0.5)) == "Bag(prior=0.5)"


@pytest.mark.parametrize(("positive", "negative", "name"), [
    ([], ["b"], "positive"), (["a"], [], "negative"), ("a", ["b"], "positive")])
def test_nothing_to_learn_from_is_refused_by_name(positive, negative, name):
    with pytest.raises(ParameterError, match="a list of texts") as caught:
        train(positive, negative, encode)
    assert caught.value.name == name
