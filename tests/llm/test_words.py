"""Words that a text must contain: what can never be written is refused by what forbids it."""
import models_zoo as zoo
import pytest

from unspool.core.errors import ParameterError
from unspool.core.params import Params
from unspool.llm.words import writable_words


@pytest.fixture
def lm(make, kit):
    return make(zoo.tiny(vocab_size=26, max_position_embeddings=128), kit.letters(26), ends={25})


@pytest.mark.parametrize(("given", "who"), [
    ({"bad_words": ["b"]}, "bad_words"), ({"bad_words": ["bc"]}, "bad_words"),
    ({"suppress_tokens": [2]}, "suppress_tokens"), ({"logit_bias": {"c": False}}, "logit_bias"),
    ({"allowed_token_ids": [0, 1, 25]}, "allowed_token_ids"),
    ({"allowed_token_ids": [0, 1], "bad_words": ["b"]}, "allowed_token_ids and bad_words"),
])
def test_a_word_of_forbidden_tokens_is_refused(lm, given, who):
    with pytest.raises(ParameterError) as error:
        lm.generate("a", must_contain=["abc"], max_new_tokens=8, **given)
    assert str(error.value).startswith(f"must_contain: 'abc' cannot be written, {who} forbid")
    assert error.value.name == "must_contain" and lm.worker.thread is None


@pytest.mark.parametrize("given", [
    {"bad_words": ["ac", "abcd"]}, {"suppress_tokens": [3]}, {"logit_bias": {"c": -50}},
    {"allowed_token_ids": [0, 1, 2]}, {"begin_suppress_tokens": [0]},
], ids=str)  # fmt: skip
def test_a_word_that_can_be_written_is(lm, given):
    assert "abc" in lm.generate("a", must_contain=["abc"], max_new_tokens=8, **given).text


def test_one_way_is_enough(lm):
    found = lm.generate("a", must_contain=[["xy", "mn"]], suppress_tokens=[23], max_new_tokens=6)
    assert "mn" in found.text
    words = writable_words(lm.facts, Params(must_contain=[["xy", "mn"]], suppress_tokens=[23]))
    assert words == (((12, 13),),)


@pytest.mark.parametrize(("value", "said"), [
    ([], "an empty list of words"), ([""], "an empty text"), ([[]], "is no word"), (5, "a list of"),
    ([5.5], "is no word"), ([[99]], "outside the vocabulary"), (["abcdefghi"], "take 9 tokens"),
    (["abcd", "efgh"], "take 8 tokens"), ([[[1], [[2]]]], "at most two deep"), (["é"], ""),
])
def test_what_is_no_list_of_words_is_refused_before_anything_is_read(lm, value, said):
    with pytest.raises(ParameterError) as error:
        lm.generate("a", must_contain=value, max_new_tokens=7)
    assert said in str(error.value) and error.value.name == "must_contain"
    assert lm.worker.thread is None


def test_the_order_counts_for_the_room(lm):
    lm.explain("a", must_contain=["abc", "cab"], max_new_tokens=4)  # cabc has both
    with pytest.raises(ParameterError, match="must_contain"):
        lm.explain("a", must_contain=["abc", "cab"], must_contain_ordered=True, max_new_tokens=4)
    text = lm.generate("a", strategy="lexical_beam", must_contain=["cab", "abc"],
                       must_contain_ordered=True, max_new_tokens=9).text
    assert text.index("cab") < text.rindex("abc")
