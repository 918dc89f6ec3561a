"""The dialect `hf` against the processors of the installed transformers, built by its own pipeline.

Both get the same logits and texts. What is kept must be the same but for tokens within 1e-6 of a
border: those are the ones whose fate changes when the numbers of transformers' cuts are moved by
so much.
"""
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from golden_zoo import resolved, shaped
from transformers import (
    GenerationConfig,
    GenerationMixin,
    InfNanRemoveLogitsProcessor,
    LogitsProcessor,
    WatermarkingConfig,
)
from transformers.generation.logits_process import LogitNormalization

from unspool.engine.scored import repaired
from unspool.kernels.reading.logits import logits_of

VOCAB, ROWS, BATCHES = 140, 100, 10  # 1,000 draws
ENDS = (3, 9)
FEW = 4  # tokens that most of a text is made of
CUTS = ("top_p", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff", "top_h")
NEAR = 2e-6
ALONE = {"do_sample": True, "top_k": 0, "max_length": 4096, "num_beams": 1,
         "num_return_sequences": 1}


class Peer(GenerationMixin):
    """As much of a model of transformers as its pipeline looks at."""

    config = SimpleNamespace(is_encoder_decoder=False,
                             get_text_config=lambda: SimpleNamespace(vocab_size=VOCAB))

    def __init__(self):
        pass


def theirs(params, rows, prompts, writtens):
    """Scores [R, V] by transformers."""
    own = {name: params[name] for name in params
           if name not in ("prefix_allowed_tokens_fn", "logits_processor")}
    config = GenerationConfig(**{**ALONE, **own})
    config._eos_token_tensor = torch.tensor(ENDS)
    prompts = torch.tensor(prompts)
    processors = Peer()._get_logits_processor(
        config, prompts.shape[1], prompts, params.get("prefix_allowed_tokens_fn"),
        params.get("logits_processor"), "cpu", {})
    ids = torch.cat([prompts, torch.tensor(writtens, dtype=torch.int64)], 1)
    return processors(ids, torch.tensor(rows, dtype=torch.float64)).numpy()


def borders(params, *rest):
    """[R, V]: tokens that a step of 1e-6 takes in or out."""
    sides = []
    for way in (1 - NEAR, 1 + NEAR):
        moved = {n: min(v * way, 1.0) if n in CUTS else v for n, v in params.items()}
        sides.append(np.isfinite(theirs(moved, *rest)))
    return sides[0] != sides[1]


def texts(draw, prompt, written):
    """ROWS prompts and what was written behind them; some tokens come often."""
    shape = ROWS, prompt + written
    often = np.where(draw.random(shape) < 0.8, draw.integers(0, FEW, shape),
                     draw.integers(0, VOCAB, shape))
    return often[:, :prompt].tolist(), often[:, prompt:].tolist()


def agree(make, dtype, lengths=(9, 6), ties=False):
    """Compare BATCHES of ROWS, each with parameters of its own."""
    differ = 0
    for batch in range(BATCHES):
        draw = np.random.default_rng(batch)
        params = make(draw)
        prompts, writtens = texts(draw, *lengths)
        rows = draw.normal(0, draw.choice([0.5, 2.0, 4.0]), (ROWS, VOCAB)).astype(np.float32)
        rows = np.round(rows) if ties else rows
        want = theirs(params, rows, prompts, writtens)
        got = shaped({"order": "hf", "do_sample": True, "top_k": 0, **params}, rows, prompts,
                     writtens, dtype, ends=ENDS)
        kept = np.isfinite(want)
        off = kept != np.isfinite(got)
        if off.any():
            assert not (off & ~borders(params, rows, prompts, writtens)).any()
        differ += int(off.any(1).sum())
        same(want, got, kept & ~off)
    assert differ <= 0.005 * ROWS * BATCHES


def same(want, got, both):
    """Values within 1e-6 of the largest of their row, whatever is added to all of them."""
    size = np.where(np.isfinite(want), np.abs(want), 0).max(1)
    for w, g, b, s in zip(want, got, both, size, strict=True):
        assert b.any()
        w, g = w[b] - w[b].max(), g[b] - g[b].max()
        np.testing.assert_allclose(g, w, rtol=1e-6, atol=1e-6 * max(s, 1))


def ids(draw, most=6):
    return [int(i) for i in draw.choice(VOCAB, draw.integers(1, most), replace=False)]


def biases(draw):
    """Single tokens, and sequences that the texts often end in."""
    out = {(i,): float(draw.normal(0, 4)) for i in ids(draw)}
    return out | {tuple(map(int, draw.integers(0, FEW, n))): float(draw.normal(0, 4))
                  for n in (2, 2, 2, 3, 3)}


def words(draw):
    return [[i] for i in ids(draw)] + [list(map(int, draw.integers(0, FEW, n))) for n in (2, 2, 3)]


def u(low, high):
    return lambda draw: float(draw.uniform(low, high))


def sizes(*choices):
    return lambda draw: int(draw.choice(choices))


def by_last(batch, text):
    """An answer that depends on the text."""
    return [int(text[-1]), (int(text[-1]) * 7 + 1) % VOCAB, 5, 11]


class Tilted(LogitsProcessor):
    def __call__(self, input_ids, scores):
        return scores * 0.5 + input_ids[:, -1:] * 0.01


ONE = {  # every processor of the pipeline: its parameters, and lengths where it acts
    "sequence_bias": (biases, {}),
    "encoder_repetition_penalty": (u(0.5, 3), {}),
    "repetition_penalty": (u(0.5, 3), {}),
    "no_repeat_ngram_size": (sizes(1, 2, 3), {}),
    "encoder_no_repeat_ngram_size": (sizes(1, 2, 3), {}),
    "bad_words_ids": (lambda draw: [*words(draw), [ENDS[0]]], {}),
    "min_length": (sizes(14, 15, 16), {}),
    "min_new_tokens": (sizes(5, 6, 7), {}),
    "prefix_allowed_tokens_fn": (lambda draw: by_last, {}),
    "forced_bos_token_id": (sizes(0, 77), {"lengths": (1, 0)}),
    "forced_eos_token_id": (lambda draw: [3, 50], {"max_length": 16}),
    "exponential_decay_length_penalty": (
        lambda draw: (int(draw.integers(0, 6)), float(draw.uniform(1.01, 1.5))), {}),
    "suppress_tokens": (ids, {}),
    "begin_suppress_tokens": (ids, {"lengths": (9, 0)}),
    "logits_processor": (lambda draw: [Tilted()], {}),
    "temperature": (u(0.05, 3), {}),
    "top_h": (u(0.05, 1), {}),
    "top_k": (sizes(1, 2, 5, 40, 139, 140, 500), {}),
    "top_p": (u(0, 1), {}),
    "min_p": (u(0, 1), {}),
    "typical_p": (u(0.02, 0.98), {}),
    "epsilon_cutoff": (u(1e-4, 0.2), {}),
    "eta_cutoff": (u(1e-4, 0.2), {}),
}
BOTH = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["defined", "compiled"])


@BOTH
@pytest.mark.parametrize("name", ONE)
def test_every_processor(name, dtype):
    make, how = ONE[name]
    how = dict(how)
    extra = {n: how.pop(n) for n in list(how) if n != "lengths"}
    agree(lambda draw: {name: make(draw), **extra}, dtype, **how)


@BOTH
@pytest.mark.parametrize("scheme", ["lefthash", "selfhash"])
def test_the_watermark(scheme, dtype):
    agree(lambda draw: {"watermarking_config": WatermarkingConfig(
        bias=float(draw.uniform(1, 4)), seeding_scheme=scheme, context_width=2)}, dtype)


@BOTH
@pytest.mark.parametrize("name", ["top_k", "typical_p"])
def test_ties_are_kept(name, dtype):
    agree(lambda draw: {name: ONE[name][0](draw)}, dtype, ties=True)


PIPELINES = {
    "cuts": ("temperature", "top_h", "top_k", "top_p", "min_p", "typical_p", "epsilon_cutoff",
             "eta_cutoff"),
    "bans": ("sequence_bias", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size",
             "bad_words_ids", "min_length", "min_new_tokens", "suppress_tokens",
             "begin_suppress_tokens"),
    "text": ("sequence_bias", "encoder_repetition_penalty", "repetition_penalty",
             "exponential_decay_length_penalty", "temperature", "top_p"),
    "all": tuple(name for name in ONE if name not in (
        "prefix_allowed_tokens_fn", "forced_bos_token_id", "forced_eos_token_id",
        "logits_processor")),
    "allowed": ("sequence_bias", "repetition_penalty", "prefix_allowed_tokens_fn", "temperature",
                "top_k", "top_p", "logits_processor"),
}


@BOTH
@pytest.mark.parametrize("which", PIPELINES)
def test_whole_pipelines_in_their_order(which, dtype):
    weak = {"top_h": u(0.7, 1), "min_p": u(0, 0.05), "typical_p": u(0.7, 1), "top_k": sizes(40, 90),
            "epsilon_cutoff": u(0, 1e-3), "eta_cutoff": u(0, 1e-3), "top_p": u(0.6, 1)}

    def make(draw):
        names = PIPELINES[which]
        some = [n for n in names if draw.random() < 0.7] if which == "all" else names
        return {n: weak.get(n, ONE[n][0])(draw) for n in some}

    agree(make, dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_damaged_rows_are_cleaned_as_by_theirs(dtype):
    """Minus infinity stays here, where theirs makes it the lowest number: it removes a token."""
    draw = np.random.default_rng(0)
    rows = torch.tensor(draw.normal(0, 2, (ROWS, VOCAB)), dtype=dtype)
    for row in rows:
        row[torch.tensor(draw.choice(VOCAB, 5, replace=False))] = float(draw.choice(
            [np.nan, np.inf]))
    want = InfNanRemoveLogitsProcessor()(None, rows).numpy()
    got = repaired(logits_of(rows.numpy()), range(ROWS)).values
    np.testing.assert_array_equal(got, want)


@BOTH
def test_what_is_left_is_normalised_as_by_theirs(dtype):
    agree(lambda draw: {"renormalize_logits": True, "top_p": 0.7}, dtype)
    row = np.random.default_rng(0).normal(0, 2, (1, VOCAB)).astype(np.float32)
    want = LogitNormalization()(None, torch.tensor(row, dtype=torch.float64)).numpy()
    got = shaped({"renormalize_logits": True, "do_sample": True}, row, [[1]], dtype=dtype)
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_the_default_of_top_k_is_that_of_generate():
    default = GenerationConfig._get_default_generation_params()["top_k"]
    [cut] = resolved({"order": "hf", "do_sample": True}, [0], VOCAB).request.rules
    assert str(cut) == f"top_k({default}, 1)" == "top_k(50, 1)"
    assert resolved({"order": "hf"}, [0], VOCAB).request.rules[-1].name == "greedy"


@pytest.mark.parametrize("name", ONE)
def test_the_draws_are_of_texts_that_the_processor_acts_on(name):
    make, how = ONE[name]
    acted = []
    for batch in range(BATCHES):
        draw = np.random.default_rng(batch)
        params = {name: make(draw), **{n: v for n, v in how.items() if n != "lengths"}}
        prompts, writtens = texts(draw, *how.get("lengths", (9, 6)))
        rows = draw.normal(0, 2, (ROWS, VOCAB)).astype(np.float32)
        acted.append((theirs(params, rows, prompts, writtens) != rows).any(1).mean())
    assert np.mean(acted) > 0.1
