"""The beam searches through the engine: whole trees of tiny models, exact chances, transformers."""
import itertools
import math
from collections import Counter

import numpy as np
import pytest
import torch
from beams_zoo import contains
from engine_zoo import run
from models_zoo import hf_tiny, markov, native, span, tiny

from unspool.core.request import Request
from unspool.engine.scheduler import Scheduler
from unspool.rules import temperature, top_k
from unspool.stops.length import MaxNew
from unspool.stops.tokens import EndTokens
from unspool.strategies import (
    Beam,
    BeamSample,
    DiverseBeam,
    LexicalBeam,
    SiblingBeam,
    StochasticBeam,
)
from unspool.strategies.length import rank
from unspool.strategies.words import Words

VOCAB, LONGEST, ENDS, START = 5, 4, (3, 4), (1, 0)


def asked(strategy, rules=(), ends=ENDS, longest=LONGEST, prompt=START, **fields):
    stops = (EndTokens(frozenset(ends)), MaxNew(longest))
    return Request(tuple(prompt), strategy, tuple(rules), stops, **fields)


def answers(job):
    return [(tuple(b.tokens), score) for b, score in job.strategy.ranked(job)]


def every_text(vocab=VOCAB, ends=ENDS, longest=LONGEST, text=()):
    if len(text) == longest or (text and text[-1] in ends):
        yield text
    else:
        for token in range(vocab):
            yield from every_text(vocab, ends, longest, (*text, token))


def truth(model, text, prompt=START, warmth=1.0):
    """The summed log-probability of a text by one plain forward over it, in float64."""
    rows = np.array(model.score([span([*prompt, *text][:-1])]).rows()).astype(np.float64)
    rows = rows[-len(text):] / warmth
    peaks = rows.max(-1, keepdims=True)
    logs = rows - peaks - np.log(np.exp(rows - peaks).sum(-1, keepdims=True))
    return float(sum(row[token] for row, token in zip(logs, text, strict=True)))


@pytest.fixture(scope="module")
def model():
    made = tiny(vocab_size=VOCAB)
    yield made
    made.close()


@pytest.fixture(scope="module")
def sums(model):
    return {text: truth(model, text) for text in every_text()}


def one(model, strategy, **fields):
    [job] = run(model, asked(strategy, **fields), scheduler=Scheduler(rows=700))
    return job


# ── whole trees ──────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("kind, alpha", [
    ("plain", 0.0), ("plain", 1.5), ("plain", -1.0), ("gnmt", 0.6), ("gnmt", -0.6),
    ("average", 1.0)])
def test_full_width_finds_the_best_of_all_texts(model, sums, kind, alpha):
    tail = {"n": 5, "length_penalty": alpha, "early_stopping": "never", "longest": LONGEST,
            "ends": 2, "kind": kind}
    want = sorted((rank(s, len(t), kind, alpha) for t, s in sums.items()), reverse=True)[:5]
    for strategy in (Beam(625, **tail), SiblingBeam(625, rate=0.5, **tail)):
        got = answers(one(model, strategy))
        assert [s for _, s in got] == pytest.approx(want, abs=1e-9)
        for text, score in got:
            assert score == pytest.approx(rank(sums[text], len(text), kind, alpha), abs=1e-9)


@pytest.mark.parametrize("words, ordered", [
    ((((2,),),), False), ((((0, 1),), ((1, 2),)), False), ((((1,),), ((2, 2), (0,))), True)])
def test_full_width_finds_the_best_text_that_has_the_words(model, sums, words, ordered):
    want = {t: s / len(t) for t, s in sums.items() if contains(t, Words(words, ordered))}
    strategy = LexicalBeam(625, n=3, early_stopping="never", longest=LONGEST, ends=2, words=words,
                           ordered=ordered)
    got = answers(one(model, strategy))
    best = sorted(want.values(), reverse=True)[:3]
    assert [s for _, s in got] == pytest.approx(best, abs=1e-9)
    assert dict(got) == pytest.approx({t: want[t] for t, _ in got}, abs=1e-9)


def test_a_wide_sample_is_the_whole_tree(model, sums):
    job = one(model, StochasticBeam(625))
    assert {t for t, _ in answers(job)} == set(sums)
    for branch in job.branches:
        assert branch.score == pytest.approx(sums[tuple(branch.tokens)], abs=1e-9)


def alike(got, want):
    """The same texts; scores may differ in the last bits, as this model's products do."""
    assert [t for t, _ in answers(got)] == [t for t, _ in answers(want)]
    assert [s for _, s in answers(got)] == pytest.approx([s for _, s in answers(want)], abs=1e-9)


# ── laws between searches ────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("rules", [(), (temperature(0.7), top_k(9))], ids=["plain", "cut"])
def test_kin_that_change_nothing_are_beam_search(rules):
    big = tiny(vocab_size=24)
    tail = {"n": 4, "ends": 1}
    strategies = (Beam(4, **tail), SiblingBeam(4, rate=0.0, **tail),
                  DiverseBeam(4, groups=1, penalty=2.0, **tail))
    want, *others = run(big, *(asked(s, rules, (11,), 10, (1, 2, 3)) for s in strategies))
    for got in others:
        alike(got, want)
        assert [r.token for r in got.trace] == [r.token for r in want.trace]


KIN = {
    "beam sample": BeamSample(4, n=3, early_stopping=True),
    "diverse": DiverseBeam(6, n=4, groups=3, penalty=0.8),
    "siblings": SiblingBeam(4, n=4, rate=0.5),
    "stochastic": StochasticBeam(5),
    "words": LexicalBeam(4, n=2, longest=12, words=(((5, 6),), ((6, 7), (9,)))),
}


@pytest.mark.parametrize("name", KIN)
@pytest.mark.parametrize("rules", [(), (temperature(1.3), top_k(20))], ids=["plain", "cut"])
def test_company_and_memory_change_nothing_and_scores_are_true(name, rules):
    big = tiny(vocab_size=24)
    requests = [asked(KIN[name], rules, (11,), 12, prompt, seed=seed)
                for prompt, seed in (((1, 2, 3), 5), ((7,), 5), ((1, 2, 3), 6))]
    alone = [run(big, request, memory="none")[0] for request in requests]
    for got, want in zip(run(big, *requests), alone, strict=True):
        alike(got, want)
        for branch in got.branches:
            prompt = tuple(got.request.prompt)
            assert branch.logprob == pytest.approx(truth(big, branch.tokens, prompt), abs=1e-9)
    seeded = name in ("beam sample", "stochastic")
    assert (answers(alone[0]) != answers(alone[2])) is seeded


# ── chances ──────────────────────────────────────────────────────────────────────────────────────
def texts_of(model, strategy, runs, longest=3):
    """The answers of so many seeds."""
    for first in range(0, runs, 250):
        jobs = run(model, *(asked(strategy, longest=longest, seed=first + i) for i in range(250)),
                   scheduler=Scheduler(rows=2000))
        yield from (tuple(t for t, _ in answers(job)) for job in jobs)


def log_rows(seed):
    torch.manual_seed(seed)
    return torch.randn(VOCAB, VOCAB)


@pytest.mark.parametrize("strategy, seed", [(StochasticBeam(2), 0), (StochasticBeam(1), 1),
                                            (BeamSample(1), 2)])
def test_the_chance_of_each_sample(strategy, seed, runs=2000):
    """Ordered pairs without replacement, and single texts: chi-square against all of them."""
    made = markov(log_rows(seed))
    p = {t: math.exp(truth(made, t)) for t in every_text(longest=3)}
    chances = {(a,): p[a] for a in p} if strategy.width == 1 else {
        (a, b): p[a] * p[b] / (1 - p[a]) for a, b in itertools.permutations(p, 2)}
    counts = Counter(texts_of(made, strategy, runs))
    assert set(counts) <= set(chances) and sum(chances.values()) == pytest.approx(1)
    often = {k: c * runs for k, c in chances.items() if c * runs >= 5}
    rest = runs - sum(often.values())
    statistic = sum((counts[k] - due) ** 2 / due for k, due in often.items())
    statistic += (runs - sum(counts[k] for k in often) - rest) ** 2 / rest
    degrees = len(often)
    assert degrees > 15
    assert statistic < degrees + 4.5 * math.sqrt(2 * degrees) + 10  # about one in 10^5


# ── transformers ─────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("seed", range(8))
def test_transformers_sampled_beams_have_the_scores_that_we_give_their_texts(seed):
    """Their draws are their own; what a sampled text is worth is not."""
    theirs = hf_tiny("llama", seed)
    ours = native(theirs, "float64")
    prompt, new, penalty = [5, 9, 2, 7], 7, (0.0, 1.0, 1.7)[seed % 3]
    torch.manual_seed(seed)
    with torch.no_grad():
        out = theirs.generate(
            torch.tensor([prompt]), attention_mask=torch.ones(1, 4, dtype=torch.long),
            do_sample=True, num_beams=3, num_return_sequences=3, max_new_tokens=new, top_k=0,
            temperature=1.5, renormalize_logits=True, length_penalty=penalty, eos_token_id=11,
            pad_token_id=0, return_dict_in_generate=True, output_scores=True)
    assert len(out.sequences_scores) == 3
    for ids, theirs_score in zip(out.sequences[:, 4:].tolist(), out.sequences_scores, strict=True):
        text = ids[:ids.index(11) + 1] if 11 in ids else ids
        score = rank(truth(ours, text, prompt, 1.5), len(text), "plain", penalty)
        assert score == pytest.approx(float(theirs_score), abs=1e-4)
