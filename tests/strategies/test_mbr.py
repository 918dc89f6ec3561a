"""Minimum Bayes risk, against its definition."""
from math import exp, fsum, isclose

import pytest
from searches_zoo import Common, answers, run, shared, texts

from unspool.core.slot import PICK
from unspool.strategies import MBR, Sample


def defined(samples, weights):
    return [fsum(w * shared(h, r) for w, r in zip(weights, samples, strict=True)) for h in samples]


def test_every_sample_is_a_hypothesis_and_a_reference():
    samples = texts(run(Sample(12)))
    want = sorted(zip(samples, defined(samples, [1 / 12] * 12), strict=True), key=lambda a: -a[1])
    got = answers(run(MBR(12, Common(), n=12)))
    assert [t for t, _ in got] == [t for t, _ in want]
    assert [s for _, s in got] == pytest.approx([s for _, s in want])


def test_weighted_by_the_models_probability_equal_texts_count_once():
    plain = run(Sample(12))
    samples = texts(plain)
    once = {tuple(b.tokens): exp(b.logprob) for b in plain.branches}
    assert len(once) < len(samples)
    share = [once[tuple(t)] / samples.count(t) / sum(once.values()) for t in samples]
    want = max(zip(samples, defined(samples, share), strict=True), key=lambda a: a[1])
    [(text, score)] = answers(run(MBR(12, Common(), weighted=True)))
    assert text == want[0] and isclose(score, want[1])


def test_hidden_states_are_read_where_the_utility_compares_them():
    assert MBR(2, Common()).reads is PICK
    job = run(MBR(2, Common(states=True)))
    assert MBR(2, Common(states=True)).reads.hidden
    assert all(f.state is not None for b in job.branches for f in b.facts)
    assert all(f.state is None for b in run(MBR(2, Common())).branches for f in b.facts)


def test_the_utility_is_asked_once():
    utility = Common()
    texts(run(MBR(5, utility)))
    assert utility.asked == [5]
