import math

import numpy as np
import pytest
from scorers_zoo import branch, piece, saying

from unspool.core.errors import ParameterError
from unspool.scorers import OwnExtractor, OwnReward, OwnUtility


def test_a_reward_is_called_once_with_all_texts():
    calls = []

    def lengths(texts):
        calls.append(texts)
        return [len(text) for text in texts]

    assert OwnReward(lengths, piece).rewards(saying("é", "", "abc")) == [1.0, 0.0, 3.0]
    assert calls == [["é", "", "abc"]]


def test_token_ids_if_asked():
    assert OwnReward(lambda texts: list(map(sum, texts)), piece, ids=True).rewards(
        [branch([1, 2]), branch([])]) == [3.0, 0.0]
    pairs = OwnUtility(lambda a, b: a == b, piece, ids=True)
    with pytest.raises(ParameterError, match="gave True"):
        pairs.table(saying("a"))
    assert OwnExtractor(lambda ids: ids[-1], piece, ids=True).answers(saying("ab")) == [98]


@pytest.mark.parametrize("kind", [tuple, np.array, lambda v: np.array(v, np.float32), iter])
def test_numbers_of_any_kind_will_do(kind):
    assert OwnReward(lambda texts: kind([1, 2.5]), piece).rewards(saying("a", "b")) == [1.0, 2.5]


def test_tensors_will_do():
    torch = pytest.importorskip("torch")
    assert OwnReward(lambda texts: torch.tensor([1.0, 2.0]), piece).rewards(
        saying("a", "b")) == [1.0, 2.0]


def test_a_utility_goes_from_hypothesis_to_reference():
    found = OwnUtility(lambda hypothesis, reference: len(hypothesis) / len(reference), piece)
    assert found.table(saying("a", "bcde")) == [[1.0, 0.25], [4.0, 1.0]]
    assert found.states is False and found.table([]) == []


BAD = {
    "short": ([1.0], "gave 1 numbers for 2 texts"),
    "long": ([1.0, 2.0, 3.0], "gave 3 numbers for 2 texts"),
    "alone": (1.0, "must give a list of 2"),
    "none": (None, "gave None"),
    "string": ("12", "must give a list of 2"),
    "mapping": ({1: 2, 3: 4}, "must give a list of 2"),
    "nan": ([1.0, math.nan], "gave nan"),
    "infinite": ([1.0, -math.inf], "gave -inf"),
    "number as text": ([1.0, "2"], "gave '2'"),
    "truth": ([1.0, True], "gave True"),
    "numpy's truth": (np.array([True, False]), "finite number"),
    "complex": ([1.0, 2j], "gave 2j"),
    "huge": ([1.0, 10**400], "finite number"),
    "rows": (np.ones((2, 1)), "finite number"),
}


@pytest.mark.parametrize(("given", "why"), BAD.values(), ids=BAD)
def test_what_is_no_reward_is_refused_by_name(given, why):
    def judge(texts):
        return given

    with pytest.raises(ParameterError, match=f"^reward judge: .*{why}") as caught:
        OwnReward(judge, piece).rewards(saying("a", "b"))
    assert caught.value.name == "reward"


def test_what_is_no_utility_is_refused_by_name():
    with pytest.raises(ParameterError, match="utility <lambda>: it gave nan") as caught:
        OwnUtility(lambda a, b: math.nan, piece).table(saying("a"))
    assert caught.value.name == "utility"


@pytest.mark.parametrize("given", [[1], {}, math.nan, np.ones(2)])
def test_what_cannot_be_counted_is_refused_by_name(given):
    with pytest.raises(ParameterError, match="that can be hashed and equals itself") as caught:
        OwnExtractor(lambda text: given, piece).answers(saying("a"))
    assert caught.value.name == "answer"


def test_an_answer_stands_where_it_was_written_last():
    last = OwnExtractor(lambda text: text.split()[-1] if text else None, piece)
    branches = [branch(b"\xff b a b"), branch(b"")]
    assert last.answers(branches) == ["b", None]
    assert last.spans(branches) == [(6, 7), None]


@pytest.mark.parametrize("given", ["x", 3, ""])
def test_an_answer_that_was_not_written_stands_nowhere(given):
    made = OwnExtractor(lambda text: given, piece)
    assert made.answers(saying("a")) == [given]
    with pytest.raises(ParameterError, match="not a part of the text"):
        made.spans(saying("a"))


def test_they_are_values():
    for kind in (OwnReward, OwnUtility, OwnExtractor):
        assert kind(len, piece) == kind(len, piece) != kind(len, piece, ids=True)
        assert hash(kind(len, piece)) == hash(kind(len, piece))
        assert repr(kind(len, piece)) == f"{kind.__name__}(function=<built-in function len>, " \
            "ids=False)"
