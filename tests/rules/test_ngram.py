"""Which tokens would repeat an n-gram: brute force, the prompt's part in it, and transformers."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts_zoo import LOGITS, TOKENS, WAYS, by_transformers, random_texts, values

from unspool.rules import encoder_no_repeat_ngram, no_repeat_ngram

FLAT = [0.0] * 5


def gone(rule, prompt, written=(), dtype=np.float64):
    """The tokens that the rule removes."""
    out = values(FLAT, rule, prompt=prompt, written=written, dtype=dtype)
    return np.flatnonzero(out == -np.inf).tolist()


@WAYS
def test_by_hand(dtype):
    assert gone(no_repeat_ngram(2), [1, 2, 3], [1], dtype) == [2]
    assert gone(no_repeat_ngram(2), [1, 2, 1, 3], [1], dtype) == [2, 3]
    assert gone(no_repeat_ngram(3), [1, 2, 3, 0], [1, 2], dtype) == [3]
    assert gone(no_repeat_ngram(3), [1, 2, 3, 0], [2], dtype) == []
    assert gone(no_repeat_ngram(1), [1, 2, 1], [4], dtype) == [1, 2, 4]
    assert gone(no_repeat_ngram(0), [1, 2, 1], [4], dtype) == []
    assert gone(no_repeat_ngram(2), [1], [], dtype) == []
    assert gone(no_repeat_ngram(2), [1], [1], dtype) == [1]  # an n-gram may overlap its repetition
    assert gone(no_repeat_ngram(10**9), [1, 2, 1], [4], dtype) == []


@WAYS
def test_the_encoder_form_takes_its_ngrams_from_the_prompt(dtype):
    assert gone(encoder_no_repeat_ngram(2), [1, 2, 3], [1, 3, 1], dtype) == [2]
    assert gone(no_repeat_ngram(2), [1, 2, 3], [1, 3, 1], dtype) == [2, 3]
    assert gone(encoder_no_repeat_ngram(1), [1, 2], [3], dtype) == [1, 2]
    assert gone(encoder_no_repeat_ngram(3), [1, 2, 1, 2], [], dtype) == [1]


@given(LOGITS, TOKENS, TOKENS, st.integers(0, 6), st.sampled_from([np.float64, np.float32]))
def test_what_would_repeat_is_removed_and_nothing_else(row, prompt, written, n, dtype):
    """Written out: a token is removed if the text with it ends in an n-gram of the text."""
    ids, text = prompt + written, {"prompt": prompt, "written": written, "dtype": dtype}
    for rule, source in ((no_repeat_ngram(n), ids), (encoder_no_repeat_ngram(n), prompt)):
        known = {tuple(source[i:i + n]) for i in range(len(source) - n + 1)} if n else set()
        want = [-np.inf if tuple((*ids, t)[-n:]) in known else x for t, x in enumerate(row)]
        assert values(row, rule, **text).tolist() == want


@given(TOKENS, TOKENS, st.integers(1, 5))
def test_a_longer_ngram_removes_no_more(prompt, written, n):
    ids = [token % 5 for token in prompt + written]
    assert set(gone(no_repeat_ngram(n + 1), ids)) <= set(gone(no_repeat_ngram(n), ids))


@WAYS
def test_they_agree_with_transformers(dtype):
    pytest.importorskip("torch")
    from torch import tensor
    from transformers import EncoderNoRepeatNGramLogitsProcessor as Encoder
    from transformers import NoRepeatNGramLogitsProcessor as Plain

    for i, (row, prompt, written) in enumerate(random_texts(200)):
        ids, n = prompt + written, 1 + i % 4
        text = {"prompt": prompt, "written": written, "dtype": dtype}
        assert (values(row, no_repeat_ngram(n), **text).tolist()
                == by_transformers(Plain(n), row, ids).tolist())
        assert (values(row, encoder_no_repeat_ngram(n), **text).tolist()
                == by_transformers(Encoder(n, tensor([prompt])), row, ids).tolist())
