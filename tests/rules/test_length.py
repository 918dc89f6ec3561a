"""The end held off and brought on: which lengths count, and transformers."""
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts_zoo import LOGITS, SOME_TOKENS, TOKENS, WAYS, by_transformers, random_texts, values

from unspool.rules import exponential_decay, min_length, min_new_tokens

GONE = -np.inf
ENDS = (1, 3)


@WAYS
def test_b24_the_prompt_does_not_count_and_every_end_does(dtype):
    row, rule = [0.0, 5.0, 3.0, 4.0], min_new_tokens(2, data=ENDS)
    for written, want in (([], [0, GONE, 3, GONE]), ([2], [0, GONE, 3, GONE]), ([2, 0], row)):
        assert values(row, rule, prompt=[2] * 50, written=written, dtype=dtype).tolist() == want


@WAYS
def test_in_min_length_it_does(dtype):
    row, rule = [0.0, 5.0, 3.0, 4.0], min_length(4, data=(*ENDS, 9))
    assert values(row, rule, prompt=[2, 2], written=[2], dtype=dtype).tolist() == [0, GONE, 3, GONE]
    assert values(row, rule, prompt=[2, 2], written=[2, 2], dtype=dtype).tolist() == row
    assert values(row, rule, prompt=[2] * 4, dtype=dtype).tolist() == row


@WAYS
def test_decay_by_hand(dtype):
    row, rule = [1.0, 2.0, 0.0, -2.0, GONE], exponential_decay(1, 2, data=(1, 2, 3, 4, 3))

    def after(count):
        return values(row, rule, prompt=[0, 0], written=[0] * count, dtype=dtype).tolist()

    assert after(0) == after(1) == row
    assert after(2) == [1, 4, 0, 0, GONE]  # |l| * (2 - 1) more
    assert after(3) == [1, 8, 0, 4, GONE]  # |l| * (4 - 1) more
    assert values(row, exponential_decay(0, 0.5, data=ENDS), written=[0], dtype=dtype).tolist() == [
        1, 1, 0, -3, GONE]


@WAYS
def test_decay_does_not_overflow(dtype):
    """It ends at the largest float32: the end is certain."""
    got = values([5.0, 2.0, -2.0], exponential_decay(0, 10, data=(1, 2)), written=[0] * 900,
                 dtype=dtype)
    assert np.isfinite(got).all() and got[1] == got[2]
    assert got[0] - got[1] == pytest.approx(-3.4028235e38)


@given(LOGITS, TOKENS, TOKENS, st.integers(0, 16), st.sampled_from([np.float64, np.float32]))
def test_they_are_their_definitions(row, prompt, written, n, dtype):
    text = {"prompt": prompt, "written": written, "dtype": dtype}
    without = [GONE if t in ENDS else x for t, x in enumerate(row)]
    total = len(prompt) + len(written)
    assert values(row, min_length(n, data=ENDS), **text).tolist() == (
        without if total < n else list(row))
    assert values(row, min_new_tokens(n, data=ENDS), **text).tolist() == (
        without if len(written) < n else list(row))
    more = 1.5 ** max(len(written) - n, 0) - 1
    want = [x + abs(x) * more if t in ENDS and x > GONE else x for t, x in enumerate(row)]
    got = values(row, exponential_decay(n, 1.5, data=ENDS), **text).tolist()
    assert got == pytest.approx(want, rel=1e-6, abs=1e-6)


@given(LOGITS, SOME_TOKENS, st.floats(1, 2))
def test_decay_only_grows(row, written, factor):
    rule = exponential_decay(1, factor, data=ENDS)
    steps = [values(row, rule, written=written[:n]) for n in range(len(written) + 1)]
    assert all((b >= a).all() for a, b in pairwise(steps))


@WAYS
def test_they_agree_with_transformers(dtype):
    pytest.importorskip("torch")
    from transformers import (
        ExponentialDecayLengthPenalty,
        MinLengthLogitsProcessor,
        MinNewTokensLengthLogitsProcessor,
    )

    ends = [3, 5]
    for i, (row, prompt, written) in enumerate(random_texts(200)):
        ids, text = prompt + written, {"prompt": prompt, "written": written, "dtype": dtype}
        for rule, processor in (
                (min_length(i % 40, data=tuple(ends)), MinLengthLogitsProcessor(i % 40, ends)),
                (min_new_tokens(i % 20, data=tuple(ends)),
                 MinNewTokensLengthLogitsProcessor(len(prompt), i % 20, ends)),
                (exponential_decay(i % 20, 1.1, data=tuple(ends)),
                 ExponentialDecayLengthPenalty((i % 20, 1.1), ends, len(prompt)))):
            got, want = values(row, rule, **text), by_transformers(processor, row, ids)
            assert got == pytest.approx(want, rel=1e-6)
