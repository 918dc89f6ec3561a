"""Rows behind a text, shaped by one way or the other, and what transformers makes of them."""
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unspool.core.history import history
from unspool.engine.shape import shaped
from unspool.kernels.reading.logits import logits_of
from unspool.rules.plain import Seat

WAYS = pytest.mark.parametrize("dtype", [np.float64, np.float32])  # by definition, by kernels
VOCAB = 7  # few tokens: texts repeat themselves
TOKENS = st.lists(st.integers(0, VOCAB - 1), max_size=14)
SOME_TOKENS = st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=14)
# Multiples of 1/8 are the same in both types.
LOGITS = arrays(np.float64, VOCAB, elements=st.one_of(
    st.integers(-64, 64).map(lambda i: i / 8), st.just(-np.inf)))


def text(prompt, written=()):
    out = history(prompt)
    for token in written:
        out = out.extend(token)
    return out


def values(row, *rules, prompt=(), written=(), dtype=np.float64):
    """What the rules make of a row behind a text: an array [V], -inf where a token is gone."""
    rows, so_far = np.asarray([row], dtype), text(prompt, written)
    seat = Seat(rules, tuple(rule.start(prompt) for rule in rules), so_far)
    group, place = shaped(logits_of(rows), 0, seat)
    out, left = np.full(rows.shape[1], -np.inf), group.left(place)
    out[left.ids] = left.values
    return out


def by_transformers(processor, row, ids):
    """[V]: the same from one of its processors."""
    import torch

    out = processor(torch.tensor([list(ids)], dtype=torch.long),
                    torch.tensor(np.asarray([row]), dtype=torch.float32))
    return out[0].numpy().astype(np.float64)


def random_texts(count, vocab=20, seed=0):
    """Rows with a prompt and what was written: random, of few tokens, so that they repeat."""
    draw = np.random.default_rng(seed)
    for _ in range(count):
        row = draw.normal(0, 3, vocab).astype(np.float32).astype(np.float64)
        prompt, written = (draw.integers(0, draw.integers(2, vocab), n).tolist()
                           for n in (draw.integers(1, 30), draw.integers(0, 30)))
        yield row, prompt, written
