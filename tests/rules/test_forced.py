"""Forced tokens: where they are forced, their probabilities, and that removed ones come back."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts_zoo import LOGITS, TOKENS, WAYS, by_transformers, random_texts, values

from unspool.rules import allowed_ids, forced_first, forced_last, suppress, temperature, top_k

GONE = -np.inf


@WAYS
@pytest.mark.parametrize("length", [1, 3, 10])
def test_b15_the_first_token_behind_a_prompt_of_any_length(dtype, length):
    row, rule = [0.0, 1.0, -1.0], forced_first(data=(2,))
    assert values(row, rule, prompt=[0] * length, dtype=dtype).tolist() == [GONE, GONE, 0]
    assert values(row, rule, prompt=[0] * length, written=[2], dtype=dtype).tolist() == row


@WAYS
def test_b15_the_last_token_of_a_length(dtype):
    row, rule = [0.0, 1.0, -1.0], forced_last(5, data=(2, 0))
    for written, want in (([0], row), ([0, 0], [0, GONE, 0]), ([0, 0, 0], row)):
        got = values(row, rule, prompt=[0, 0], written=written, dtype=dtype).tolist()
        assert got == want


@WAYS
@pytest.mark.parametrize("before", [
    (suppress(data=(2,)),), (allowed_ids(data=(0,)),), (top_k(1),), (temperature(0.1), top_k(2)),
    (allowed_ids(data=(0,)), suppress(data=(0,))), (suppress(data=(0, 1, 2)), temperature(2.0)),
], ids=str)
def test_a_forced_token_comes_back(dtype, before):
    """Also if no token at all is left for it."""
    got = values([0.0, 1.0, -1.0], *before, forced_first(data=(2,)), dtype=dtype)
    assert got.tolist() == [GONE, GONE, 0]


@WAYS
def test_what_follows_acts_on_it(dtype):
    row, rule = [0.0, 1.0, -1.0], forced_first(data=(2, 1))
    assert values(row, rule, suppress(data=(1,)), dtype=dtype).tolist() == [GONE, GONE, 0]
    assert values(row, rule, suppress(data=(2, 1)), dtype=dtype).tolist() == [GONE] * 3
    assert values(row, rule, top_k(1), dtype=dtype).tolist() == [GONE, 0, GONE]
    assert values(row, forced_first(data=(8,)), dtype=dtype).tolist() == [GONE] * 3


@given(LOGITS, TOKENS, TOKENS, st.integers(0, 20), st.sampled_from([np.float64, np.float32]))
def test_they_are_their_definitions(row, prompt, written, length, dtype):
    text, only = {"prompt": prompt, "written": written, "dtype": dtype}, [GONE] * len(row)
    only[4] = 0.0
    here = len(prompt) + len(written) + 1 == length
    assert values(row, forced_last(length, data=(4,)), **text).tolist() == (
        only if here else list(row))
    assert values(row, forced_first(data=(4,)), **text).tolist() == (
        list(row) if written else only)


@WAYS
def test_they_agree_with_transformers(dtype):
    """Its first token is that of a prompt of one token."""
    pytest.importorskip("torch")
    from transformers import ForcedBOSTokenLogitsProcessor, ForcedEOSTokenLogitsProcessor

    for i, (row, prompt, written) in enumerate(random_texts(100)):
        ids, text = prompt + written, {"prompt": prompt, "written": written, "dtype": dtype}
        length = len(ids) + i % 3
        last = values(row, forced_last(length, data=(3, 7)), **text)
        want = by_transformers(ForcedEOSTokenLogitsProcessor(length, [3, 7]), row, ids)
        assert last.tolist() == want.tolist()
        first = values(row, forced_first(data=(5,)), prompt=ids[:1], written=ids[1:], dtype=dtype)
        want = by_transformers(ForcedBOSTokenLogitsProcessor(5), row, ids)
        assert first.tolist() == want.tolist()
