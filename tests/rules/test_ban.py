"""Tokens that are named: removed, the only ones, or the last of a sequence; and transformers."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts_zoo import LOGITS, TOKENS, WAYS, by_transformers, random_texts, values

from unspool.rules import allowed_ids, bad_words, begin_suppress, suppress, top_k

IDS = st.lists(st.integers(0, 9), max_size=5).map(tuple)  # some beyond the vocabulary
GONE = -np.inf


@WAYS
def test_by_hand(dtype):
    row = [0.0, 1.0, 2.0, 3.0]
    assert values(row, suppress(data=(1, 3, 7)), dtype=dtype).tolist() == [0, GONE, 2, GONE]
    assert values(row, allowed_ids(data=(3, 1, 1, 7)), dtype=dtype).tolist() == [GONE, 1, GONE, 3]
    start = begin_suppress(data=(1,))
    assert values(row, start, prompt=[0, 0], dtype=dtype).tolist() == [0, GONE, 2, 3]
    assert values(row, start, prompt=[0], written=[0], dtype=dtype).tolist() == row


@WAYS
def test_b23_the_last_token_of_a_matched_prefix(dtype):
    """Ids 0 and 1 begin the word, 2 ends it, 3 is the same word in one token."""
    row, rule = [0.0] * 5, bad_words(data=((0, 1, 2), (3,)))

    def gone(prompt, written=()):
        out = values(row, rule, prompt=prompt, written=written, dtype=dtype)
        return np.flatnonzero(out == GONE).tolist()

    assert gone([4]) == [3]  # neither 0 nor 1 alone is a bad word
    assert gone([4], [0]) == [3]
    assert gone([4], [0, 1]) == [2, 3]
    assert gone([4, 0], [1]) == [2, 3]  # the prefix may lie in the prompt
    assert gone([4, 0, 1]) == [2, 3]
    assert gone([4, 0, 1], [4]) == [3]
    assert gone([1]) == [3]  # a text shorter than the word


@given(LOGITS, TOKENS, IDS, st.sampled_from([np.float64, np.float32]))
def test_what_is_named(row, written, ids, dtype):
    text = {"written": written, "dtype": dtype}
    without = [GONE if t in ids else x for t, x in enumerate(row)]
    only = [x if t in ids else GONE for t, x in enumerate(row)]
    assert values(row, suppress(data=ids), **text).tolist() == without
    assert values(row, allowed_ids(data=ids), **text).tolist() == only
    assert values(row, begin_suppress(data=ids), **text).tolist() == (
        list(row) if written else without)


@WAYS
def test_many_allowed_ids(dtype):
    row = np.random.default_rng(0).normal(size=70_000)
    ids = tuple(range(0, 131_072, 2))
    got = values(row, allowed_ids(data=ids), dtype=dtype)
    assert got[::2] == pytest.approx(row[::2], rel=1e-6) and (got[1::2] == GONE).all()


@WAYS
def test_they_stack_behind_a_cut(dtype):
    row = [3.0, 2.0, 1.0, 0.0]
    assert values(row, top_k(3), suppress(data=(0,)), dtype=dtype).tolist() == [GONE, 2, 1, GONE]
    both = allowed_ids(data=(1, 3)), suppress(data=(1,))
    assert values(row, top_k(3), *both, dtype=dtype).tolist() == [GONE] * 4
    assert values(row, *both, dtype=dtype).tolist() == [GONE, GONE, GONE, 0]


@WAYS
def test_they_agree_with_transformers(dtype):
    pytest.importorskip("torch")
    from transformers import (
        NoBadWordsLogitsProcessor,
        SuppressTokensAtBeginLogitsProcessor,
        SuppressTokensLogitsProcessor,
    )

    draw = np.random.default_rng(1)
    for row, prompt, written in random_texts(200):
        ids, text = prompt + written, {"prompt": prompt, "written": written, "dtype": dtype}
        words = [draw.integers(0, 20, draw.integers(1, 4)).tolist() for _ in range(5)]
        words += [[*ids[-2:], 3], [*ids[-1:], 4]]
        named = tuple(draw.integers(0, 20, 4).tolist())
        for rule, processor in (
                (bad_words(data=tuple(map(tuple, words))), NoBadWordsLogitsProcessor(words)),
                (suppress(data=named), SuppressTokensLogitsProcessor(named)),
                (begin_suppress(data=named),
                 SuppressTokensAtBeginLogitsProcessor(named, len(prompt)))):
            want = by_transformers(processor, row, ids)
            assert values(row, rule, **text).tolist() == want.tolist()
