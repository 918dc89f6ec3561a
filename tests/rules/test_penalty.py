"""Penalties: which tokens are counted, how often, and what becomes of their logits."""
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts_zoo import LOGITS, TOKENS, WAYS, by_transformers, random_texts, values

from unspool.rules import (
    encoder_repetition_penalty,
    frequency_penalty,
    presence_penalty,
    repetition_penalty,
)
from unspool.rules.rows import EVERYTHING, GENERATED

SCOPES = st.sampled_from([GENERATED, EVERYTHING])
LAST = st.integers(-1, 8)


@WAYS
def test_b18_negative_logits_and_what_counts(dtype):
    row = [-2.0, 1.0, 3.0]
    got = values(row, repetition_penalty(2), prompt=[0], written=[2], dtype=dtype)
    assert got.tolist() == [-4, 1, 1.5]
    got = values([0.0] * 3, frequency_penalty(0.5), presence_penalty(0.25), prompt=[1, 1, 1, 0],
                 written=[2, 2, 0], dtype=dtype)
    assert got.tolist() == [-0.75, 0, -1.25]


@WAYS
def test_by_hand(dtype):
    row, text = [1.0, -1.0, 0.0, 2.0], {"prompt": [0, 1, 1], "written": [1, 3], "dtype": dtype}
    assert values(row, repetition_penalty(2, GENERATED), **text).tolist() == [1, -2, 0, 1]
    assert values(row, repetition_penalty(2, EVERYTHING, 2), **text).tolist() == [1, -2, 0, 1]
    assert values(row, repetition_penalty(2, EVERYTHING, 0), **text).tolist() == row
    assert values(row, repetition_penalty(0.5), **text).tolist() == [2, -0.5, 0, 4]
    assert values(row, frequency_penalty(0.5, EVERYTHING), **text).tolist() == [0.5, -2.5, 0, 1.5]
    assert values(row, frequency_penalty(1, EVERYTHING, 3), **text).tolist() == [1, -3, 0, 1]
    assert values(row, frequency_penalty(-1), **text).tolist() == [1, 0, 0, 3]
    assert values(row, presence_penalty(0.5, EVERYTHING), **text).tolist() == [0.5, -1.5, 0, 1.5]
    assert values(row, encoder_repetition_penalty(2), **text).tolist() == [2, -0.5, 0, 2]


@pytest.mark.parametrize("rule", [repetition_penalty(2), frequency_penalty(2), presence_penalty(2)])
@WAYS
def test_removed_tokens_stay_removed(rule, dtype):
    got = values([-np.inf, 1.0], rule, prompt=[0], written=[0], dtype=dtype)
    assert got.tolist() == [-np.inf, 1]


def counted(prompt, written, scope, last):
    tokens = (prompt if scope == EVERYTHING else []) + written
    return Counter(tokens if last < 0 else tokens[max(len(tokens) - last, 0):])


@given(LOGITS, TOKENS, TOKENS, SCOPES, LAST, st.sampled_from([np.float64, np.float32]))
def test_penalties_are_their_definitions(row, prompt, written, scope, last, dtype):
    count, text = counted(prompt, written, scope, last), {"prompt": prompt, "written": written}

    def shaped(rule):
        return values(row, rule, **text, dtype=dtype).tolist()

    weak = [x if not count[t] else x / 1.5 if x > 0 else x * 1.5 for t, x in enumerate(row)]
    assert shaped(repetition_penalty(1.5, scope, last)) == pytest.approx(weak, rel=1e-6)
    assert shaped(frequency_penalty(0.25, scope, last)) == [
        x - 0.25 * count[t] for t, x in enumerate(row)]
    assert shaped(presence_penalty(0.25, scope, last)) == [
        x - 0.25 * (count[t] > 0) for t, x in enumerate(row)]


@given(LOGITS, TOKENS, TOKENS, st.floats(1, 4), st.floats(0, 3))
def test_more_penalty_never_raises_a_token(row, prompt, written, penalty, more):
    """And it leaves those alone that do not count."""
    text = {"prompt": prompt, "written": written}
    for make in (repetition_penalty, frequency_penalty, presence_penalty):
        weak, strong = values(row, make(penalty), **text), values(row, make(penalty + more), **text)
        assert (strong <= weak).all()
        others = [t for t in range(len(row)) if t not in prompt + written]
        assert strong[others].tolist() == row[others].tolist()


@WAYS
def test_they_agree_with_transformers(dtype):
    pytest.importorskip("torch")
    from torch import tensor
    from transformers import EncoderRepetitionPenaltyLogitsProcessor as Encoder
    from transformers import RepetitionPenaltyLogitsProcessor as Repetition

    for row, prompt, written in random_texts(200):
        ids, text = prompt + written, {"prompt": prompt, "written": written, "dtype": dtype}
        assert values(row, repetition_penalty(1.3), **text) == pytest.approx(
            by_transformers(Repetition(1.3), row, ids), rel=1e-6)
        assert values(row, repetition_penalty(1.3, GENERATED), **text) == pytest.approx(
            by_transformers(Repetition(1.3, len(prompt)), row, ids), rel=1e-6)
        assert values(row, encoder_repetition_penalty(1.3), **text) == pytest.approx(
            by_transformers(Encoder(1.3, tensor([prompt])), row, ids), rel=1e-6)
