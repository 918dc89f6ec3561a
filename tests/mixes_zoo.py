"""Rows for mixes, what readers say, one sample of every mix, probabilities in plain Python."""
import math

import numpy as np

from unspool.core.sockets import Heard, Voice
from unspool.mixes import (
    Attribute,
    Boost,
    ContextAware,
    Contrast,
    Dola,
    Ensemble,
    Experts,
    Guidance,
)

VOICE, OTHER = Voice(), Voice((1,))
OUT = -math.inf


class Likes:
    """A classifier: the larger the id and the longer the text, the likelier."""

    def log_probability(self, ids, candidates):
        return [-1 / (1 + token + len(ids)) for token in candidates]


SAMPLES = {
    "guidance": Guidance(1.7, VOICE),
    "context": ContextAware(0.8, VOICE),
    "contrast": Contrast(VOICE, 0.1, 0.9, 0.5),
    "contrast of logits": Contrast(VOICE, 0.2, 0.5, form="logits"),
    "experts": Experts(VOICE, OTHER, 1.5, 0.8),
    "dola": Dola((0, 2, 3)),
    "ensemble": Ensemble((2.0, 1.0, 0.5), (VOICE, OTHER)),
    "product": Ensemble((2.0, 1.0, 0.5), (VOICE, OTHER), "log"),
    "ensemble of others": Ensemble((0.0, 1.0, 3.0), (VOICE, OTHER)),
    "attribute": Attribute(Likes(), 2.0, 3),
    "boost": Boost((((1, 2, 0), 1.5), ((0,), -2.0))),
}


def random_rows(seed, count=1, vocab=11, spread=3.0):
    return np.random.default_rng(seed).normal(size=(count, vocab)) * spread


def heard(mix, own, seed=0, holes=0.0):
    """What the readers of a mix say besides `own` [S, V]; `holes`: how many tokens are ruled out.
    """
    rng = np.random.default_rng(seed)

    def rows():
        found = rng.normal(size=own.shape) * 3
        found[rng.random(own.shape) < holes] = OUT
        return found

    others = [rows() for _ in mix.voices]
    inner = {layer: rows() for layer in mix.layers}
    texts = [rng.integers(0, own.shape[1], 5).tolist() for _ in own] if mix.reads_text else []
    return Heard(own, others, inner, texts)


def slot(said, i):
    """The same for the slot i alone."""
    return Heard(said.own[i:i + 1], [o[i:i + 1] for o in said.others],
                 {j: r[i:i + 1] for j, r in said.inner.items()}, said.texts[i:i + 1])


def blended(mix, own, *others, inner=None, text=None):
    """One row."""
    def rows(row):
        return np.array([row], float)

    said = Heard(rows(own), [rows(o) for o in others],
                 {j: rows(r) for j, r in (inner or {}).items()}, [] if text is None else [text])
    out = mix.blend(said)
    assert out.shape == (1, len(own)) and out.dtype == np.float64
    return out[0]


# ── definitions in plain Python ──────────────────────────────────────────────────────────────────
def probabilities(row):
    weights = [math.exp(x - max(row)) for x in row]
    return [w / math.fsum(weights) for w in weights]


def logs(row):
    return [math.log(p) for p in probabilities(row)]


def agree(got, want, tolerance=1e-9):
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def softmax(row):
    return np.array(probabilities([float(x) for x in row]))
