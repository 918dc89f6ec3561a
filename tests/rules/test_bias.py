"""Biases: of tokens, of tokens that complete a sequence, several on one token; and transformers."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts_zoo import LOGITS, SOME_TOKENS, TOKENS, WAYS, by_transformers, random_texts, values

from unspool.rules import logit_bias

BIASES = st.integers(-8, 8).map(lambda i: i / 4)
PAIRS = st.lists(st.tuples(SOME_TOKENS.map(lambda ids: tuple(ids[:3])), BIASES), max_size=5)


@WAYS
def test_by_hand(dtype):
    rule = logit_bias(data=(((1,), 2.0), ((1,), -0.5), ((2, 1), 4.0), ((2, 3), 1.0), ((9,), 5.0)))
    row = [0.0, 1.0, 2.0, 3.0]
    assert values(row, rule, prompt=[2, 0], dtype=dtype).tolist() == [0, 2.5, 2, 3]
    assert values(row, rule, prompt=[0, 2], dtype=dtype).tolist() == [0, 6.5, 2, 4]
    assert values(row, rule, prompt=[0], written=[2], dtype=dtype).tolist() == [0, 6.5, 2, 4]


@WAYS
def test_infinity_removes_and_nothing_brings_back(dtype):
    rule = logit_bias(data=(((0,), -np.inf), ((1,), 100.0), ((0,), 7.0)))
    assert values([0.0, -np.inf, 1.0], rule, dtype=dtype).tolist() == [-np.inf, -np.inf, 1]


@WAYS
def test_a_sequence_longer_than_the_text_does_not_match(dtype):
    rule = logit_bias(data=(((0, 0, 0, 1), 1.0), ((0, 0, 1), 2.0)))
    assert values([0.0, 0.0], rule, prompt=[0], dtype=dtype).tolist() == [0, 0]
    assert values([0.0, 0.0], rule, prompt=[0], written=[0], dtype=dtype).tolist() == [0, 2]
    assert values([0.0, 0.0], rule, prompt=[0, 0, 0], dtype=dtype).tolist() == [0, 3]


@given(LOGITS, TOKENS, TOKENS, PAIRS, st.sampled_from([np.float64, np.float32]))
def test_it_is_its_definition(row, prompt, written, pairs, dtype):
    ids, want = prompt + written, list(row)
    for tokens, bias in pairs:
        *before, last = tokens
        if ids[len(ids) - len(before):] == before and len(before) <= len(ids):
            want[last] += bias
    rule = logit_bias(data=tuple(pairs))
    assert values(row, rule, prompt=prompt, written=written, dtype=dtype).tolist() == want


def test_an_empty_sequence_is_an_error():
    with pytest.raises((ValueError, IndexError)):
        values([0.0], logit_bias(data=(((), 1.0),)), dtype=np.float32)
    with pytest.raises((ValueError, IndexError)):
        values([0.0], logit_bias(data=(((), 1.0),)))


@WAYS
def test_it_agrees_with_transformers(dtype):
    pytest.importorskip("torch")
    from transformers import SequenceBiasLogitsProcessor

    draw = np.random.default_rng(1)
    for row, prompt, written in random_texts(200):
        ids = prompt + written
        cut = int(draw.integers(1, 4))
        pairs = {tuple(draw.integers(0, 20, draw.integers(1, 4)).tolist()): float(draw.normal())
                 for _ in range(6)} | {(*ids[-cut:], 5): 2.0, (5,): -1.0}
        want = by_transformers(SequenceBiasLogitsProcessor(pairs), row, ids)
        got = values(row, logit_bias(data=tuple(pairs.items())), prompt=prompt, written=written,
                     dtype=dtype)
        assert got == pytest.approx(want, rel=1e-5, abs=1e-6)
