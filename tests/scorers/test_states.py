"""Likeness by hidden states, beside the definition of BERTScore written out."""
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scorers_zoo import branch

from unspool.core.errors import ParameterError, RowError
from unspool.scorers.states import UNIT, States, directions


def text(states, tokens=None):
    """A branch of one token more than there are states: the last one has none."""
    states = [None, *np.asarray(states, np.float32)]
    return branch(range(len(states)) if tokens is None else tokens, states=states)


def random_text(seed, length, width=24):
    return text(np.random.default_rng(seed).normal(size=(length, width)))


def defined(one, other):
    """F1 of greedy matches, in plain Python."""
    def cosine(x, y):
        dot = sum(a * b for a, b in zip(x, y, strict=True))
        return max(dot / math.sqrt(sum(a * a for a in x)) / math.sqrt(sum(b * b for b in y)), 0)

    a, b = ([f.state.tolist() for f in branch.facts[1:]] for branch in (one, other))
    precision = sum(max(cosine(x, y) for y in b) for x in a) / len(a)
    recall = sum(max(cosine(x, y) for x in a) for y in b) / len(b)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def test_it_is_the_definition():
    texts = [random_text(seed, length) for seed, length in enumerate([1, 2, 7, 20])]
    found = States().table(texts)
    for i, one in enumerate(texts):
        assert found[i][i] == pytest.approx(1, abs=1e-6)
        assert found[i] == pytest.approx([defined(one, other) for other in texts], abs=1e-6)


def test_each_token_goes_with_its_own_state():
    """The state of a written token stands with the next one: texts that differ only in the state
    of the prompt's last token are one."""
    rows = np.eye(3, dtype=np.float32)
    one = branch([5, 6, 7], states=[rows[0], rows[1], rows[2]])
    other = branch([5, 6, 7], states=[rows[1], rows[1], rows[2]])
    assert States().table([one, other])[0][1] == 1.0
    assert directions(one).tolist() == rows[1:].tolist()


def test_opposites_and_zeros_are_like_nothing():
    one, minus, zeros = text([[1, 2]]), text([[-1, -2]]), text([[0, 0]])
    assert States().table([one, minus, zeros])[0][1:] == [0.0, 0.0]
    assert States().table([zeros])[0][0] == 0.0


def test_texts_without_states_are_compared_by_their_tokens():
    yes, no, nothing = branch([1]), branch([2]), branch([])
    longer = random_text(1, 3)
    found = States().table([yes, branch([1]), no, nothing, longer])
    assert found[0] == [1.0, 1.0, 0.0, 0.0, 0.0]
    assert found[3] == [0.0, 0.0, 0.0, 1.0, 0.0]
    assert found[4][:4] == [0.0] * 4


@given(st.lists(st.integers(1, 40), min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_a_pair_has_the_same_bits_in_any_batch_and_both_ways(lengths, order):
    texts = [random_text(seed, length, 33) for seed, length in enumerate(lengths)]
    found = States().table(texts)
    places = order.sample(range(len(texts)), len(texts))
    assert States().table([texts[i] for i in places]) == [[found[i][j] for j in places]
                                                          for i in places]
    assert States().table(texts[:2]) == [row[:2] for row in found[:2]]
    assert found == [list(column) for column in zip(*found, strict=True)]


def test_cosines_are_exact_whatever_the_order_of_their_sums():
    rows = directions(random_text(3, 64, 576))
    whole = (rows * UNIT).astype(np.int64).astype(object)
    exact = whole @ whole.T  # Python's own numbers
    assert ((rows @ rows.T) * UNIT * UNIT).astype(np.int64).tolist() == exact.tolist()
    assert (rows[:, ::-1] @ rows[:, ::-1].T == rows @ rows.T).all()


def test_the_length_of_a_state_does_not_matter():
    rows = np.random.default_rng(4).normal(size=(4, 8))
    texts = [branch(range(5), states=[None, *(rows * scale)]) for scale in (1, 1e-200, 1e200)]
    assert States().table(texts)[0] == pytest.approx([1, 1, 1], abs=1e-6)


def test_tensors_will_do():
    torch = pytest.importorskip("torch")
    rows = torch.randn(4, 8, generator=torch.Generator().manual_seed(0)).bfloat16()
    tensors = branch(range(5), states=[None, *rows.requires_grad_()])
    arrays = text(rows.detach().float().numpy())
    assert directions(tensors).tolist() == directions(arrays).tolist()


def test_a_model_without_states_is_refused_by_name():
    with pytest.raises(ParameterError, match="without hidden states") as caught:
        States().table([branch([1, 2])])
    assert caught.value.name == "utility"


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_states_that_are_no_numbers_are_refused(number):
    with pytest.raises(RowError, match="NaN or infinite"):
        States().table([text([[1, number]])])
