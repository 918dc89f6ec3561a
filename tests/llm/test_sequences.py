import json
import math

import numpy as np
import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from unspool.core.errors import ParameterError, PromptError
from unspool.llm.facts import Facts
from unspool.llm.sequences import MOST_BREAKERS, banned, biases, breakers, writable
from unspool.text.tokenizer import Facts as WordFacts
from unspool.text.tokenizer import Tokenizer


@pytest.fixture
def facts(kit):
    """a .. l are 0 .. 11, then a space, "no", ":", '"x', a new line and two of them."""
    return Facts("t", "r", 18, 99, kit.letters(12, (" ", "no", ":", '"x', "\n", "\n\n")))


@pytest.fixture
def bare():
    return Facts("t", "r", 18, 99)


@pytest.mark.parametrize(("value", "want"), [
    ({5: 1}, (((5,), 1.0),)), ({"5": -2.5}, (((5,), -2.5),)), ({"b": 1}, (((1,), 1.0),)),
    ({"bc": 1}, (((1, 2), 1.0),)), ({(1, 2): 3, (4,): 0}, (((1, 2), 3.0), ((4,), 0.0))),
    ({5: False}, (((5,), -math.inf),)), ({5: -math.inf}, (((5,), -math.inf),)),
    ([[[1, 2], 3.0], [[5], -1.0]], (((1, 2), 3.0), ((5,), -1.0))),
    ([["b", 1], [7, False]], (((1,), 1.0), ((7,), -math.inf))),
    ({np.int64(5): np.float32(0.5)}, (((5,), 0.5),)), ({5: np.False_}, (((5,), -math.inf),)),
])
def test_biases(facts, value, want):
    assert biases(facts, value) == want


def test_a_bias_for_each_token_of_a_text(facts):
    assert biases(facts, {"bc": 1, (4, 5): 2}, each=True) == (
        ((1,), 1.0), ((2,), 1.0), ((4, 5), 2.0))


def test_digits_are_an_id_in_an_object_and_a_text_in_a_list(facts):
    assert biases(facts, {"7": 1}) == (((7,), 1.0),)
    with pytest.raises(ParameterError, match="logit_bias='7'"):  # this vocabulary has no digits
        biases(facts, [["7", 1]])


@pytest.mark.parametrize(("value", "said"), [
    (5, "must be {token: number}"), ("b", "must be {token: number}"), ({18: 1}, "id 18 is outside"),
    ({-1: 1}, "id -1 is outside"), ({"18": 1}, "id 18 is outside"), ({(): 1}, "empty list"),
    ({(1, 99): 1}, "id 99 is outside"), ({1.5: 1}, "1.5 is no token id"),
    ({None: 1}, "None is no token id"), ({True: 1}, "True is no token id"), ({"": 1}, "empty text"),
    ({1: "x"}, "1 has 'x'"), ({1: True}, "1 has True"), ({1: math.nan}, "1 has nan"),
    ({1: math.inf}, "1 has inf"), ({1: 1e10}, "1 has 10000000000.0"), ({1: None}, "1 has None"),
    ({1: [2]}, "1 has [2]"), ([[1, 2, 3]], "is no pair"), ([5], "5 is no pair"),
    ([[[], 1]], "empty list"), ({"z": 1}, "logit_bias='z'"),
    (dict.fromkeys(range(70000), 1), "70000 entries"),
])
def test_what_is_no_bias(facts, value, said):
    with pytest.raises(ParameterError) as error:
        biases(facts, value)
    assert said in str(error.value) and error.value.name == "logit_bias"
    assert str(error.value).startswith("logit_bias")


@pytest.mark.parametrize(("value", "want"), [
    ("b", {(1,), (12, 1)}), (["b"], {(1,), (12, 1)}), ([" b"], {(1,), (12, 1)}),
    ([[1, 2], [3]], {(1, 2), (3,)}), (["b", [3]], {(1,), (12, 1), (3,)}), ([" "], {(12,)}),
])
def test_bad_words_in_every_spelling(facts, value, want):
    assert set(banned(facts, value)) == want


@pytest.mark.parametrize(("value", "said"), [
    (5, "must be texts"), ([5], "5 must be a text or a list of ids; of one id, [id]"),
    ([[]], "empty list"), ([""], "empty text"), ([[18]], "id 18 is outside"), ({"b": 1}, "must be"),
    ([None], "None must be"), (["z"], "bad_words='z'"), (["b"] * 70000, "70000 entries"),
])
def test_what_is_no_bad_word(facts, value, said):
    with pytest.raises(ParameterError) as error:
        banned(facts, value)
    assert said in str(error.value) and error.value.name == "bad_words"


def test_a_tokenizer_that_marks_the_start_of_words(kit):
    """There "b" is spelt as a word at the start, and bare in the middle of one."""
    names = ["▁", "▁b", "b", "\n", "c", "▁c"]
    vocabulary = {name: i for i, name in enumerate(names)}
    made = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=[("▁", "b"), ("▁", "c")]))
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    made.decoder = decoders.Metaspace(prepend_scheme="first")
    facts = Facts("t", "r", 6, 99, Tokenizer(made, WordFacts()))
    assert set(banned(facts, ["b"])) >= {(1,), (2,)}


def test_breakers_are_tokens_that_hold_one_and_ends_that_begin_one(facts, bare):
    assert set(breakers(facts, None)) == {(14,), (15,), (16,), (17,)}  # : "x and both new lines
    assert breakers(facts, []) == ()
    assert breakers(facts, "no") == ((13,),)
    assert set(breakers(facts, ["bc"])) == {(1, 2)}
    assert set(breakers(facts, ['"xa'])) == {(15, 0)}
    assert breakers(facts, None) is breakers(facts, None)  # the vocabulary is searched once
    assert breakers(bare, None) == () == breakers(bare, [])


@pytest.mark.parametrize("value", [5, [5], [""], ["x" * 41], {"a": 1}, [None]])
def test_what_is_no_breaker(facts, value):
    with pytest.raises(ParameterError) as error:
        breakers(facts, value)
    assert error.value.name == "dry_sequence_breakers"


def test_texts_need_a_tokenizer(bare):
    for read, value in ((biases, {"b": 1}), (banned, ["b"]), (breakers, ["b"])):
        with pytest.raises(PromptError, match="without a tokenizer"):
            read(bare, value)
    assert biases(bare, {5: 1}) == (((5,), 1.0),) and banned(bare, [[5]]) == ((5,),)


@pytest.mark.parametrize("value", [
    {5: 1, "5": 3}, {5: 1, (5,): 3}, {np.int64(5): 1, "b": 2}, {5: -math.inf}, {(1, 2): -math.inf},
    [[5, -math.inf]], [["b", 1], [[1, 2], False]], (("b", 1.5),)])
def test_biases_written_for_json_are_the_same(facts, value):
    again = json.loads(json.dumps(writable(value), allow_nan=False))
    assert biases(facts, again) == biases(facts, value)


@pytest.mark.parametrize("value", [5, "b", [5, 1], [[{}, 1]], {5: "x"}, {5: np.True_}, {5: True}])
def test_what_is_no_bias_stays_and_is_refused(facts, value):
    with pytest.raises(ParameterError) as error:
        biases(facts, writable(value))
    assert error.value.name == "logit_bias"


def test_breakers_are_few(facts):
    """Each is looked for in the whole vocabulary."""
    with pytest.raises(ParameterError, match=f"at most {MOST_BREAKERS}"):
        breakers(facts, ["b"] * (MOST_BREAKERS + 1))
