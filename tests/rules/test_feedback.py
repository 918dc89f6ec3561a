"""Rules that remember what was written, within the engine: beside drafts, forks and other requests
each branch has the state of its own tokens."""
from math import isnan

import numpy as np
import pytest
import torch
from engine_zoo import run
from models_zoo import markov

from unspool.core.request import Request
from unspool.rules import adaptive_p, min_p, mirostat_1, mirostat_2, temperature, top_k, xtc
from unspool.stops.length import MaxNew
from unspool.strategies import Beam, Sample

RECIPES = [(mirostat_1(2.0, 0.4),), (temperature(1.3), mirostat_2(1.5, 0.4)),
           (min_p(0.02), adaptive_p(0.3, 0.6)), (xtc(0.5, 0.15), top_k(9), mirostat_2(2.5, 1.0))]
EACH = pytest.mark.parametrize("rules", RECIPES, ids=lambda rules: rules[-1].name)
WAYS = pytest.mark.parametrize("dtype", ["float64", "float32"])


class Guesses:
    """A drafter that guesses what it was given, four tokens at a time."""

    def __init__(self, known):
        self.known = known

    def guess(self, branch):
        return self.known[branch.written:branch.written + 4]


def model(dtype):
    torch.manual_seed(3)
    return markov(torch.randn(12, 12) * 1.5, dtype)


def asked(prompt, new, rules, strategy=None, **fields):
    return Request(tuple(prompt), strategy or Sample(), rules, (MaxNew(new),), **fields)


def texts(job):
    return [branch.tokens for branch, _ in job.strategy.ranked(job)]


def folded(branch, rules):
    """What its rules remember, from the facts of its tokens alone."""
    states = [rule.start(branch.settled.tokens()) for rule in rules]
    for fact in branch.settled.facts(branch.written):
        states = [r.after(s, fact.token, fact) for r, s in zip(rules, states, strict=True)]
    return tuple(states)


@EACH
@WAYS
def test_a_draft_changes_no_text(rules, dtype):
    [job] = run(model(dtype), asked([0], 40, rules, seed=5))
    [want] = texts(job)
    assert job.branches[0].states == folded(job.branches[0], rules)
    for known in (want, [*want[:3], (want[3] + 1) % 12, *want[4:]], [5] * 40):
        [other] = run(model(dtype), asked([0], 40, rules, seed=5, drafter=Guesses(known)))
        assert texts(other) == [want]
        assert other.branches[0].states == job.branches[0].states
        assert other.usage.accepted > 0


@EACH
@WAYS
def test_forked_branches_remember_their_own_tokens(rules, dtype):
    [job] = run(model(dtype), asked([0], 12, rules, Beam(4), seed=2))
    own = [branch.states for branch in job.branches]
    assert len(own) >= 4 and own == [folded(branch, rules) for branch in job.branches]
    assert len(set(own)) > 1


@EACH
def test_beside_other_requests_it_is_the_text_it_is_alone(rules):
    requests = [asked([i], 20, r, seed=i) for i, r in enumerate([rules, *RECIPES])]
    together = run(model("float32"), *requests, joins=[asked([1], 9, rules)])
    for request, job in zip(requests, together, strict=False):
        [alone] = run(model("float32"), request)
        assert texts(job) == texts(alone)


def test_the_facts_hold_the_probability_before_the_last_rule():
    [job] = run(model("float32"), asked([0], 20, RECIPES[2], seed=1))
    facts = job.branches[0].settled.facts(20)
    assert all(fact.entry <= 0 for fact in facts)
    assert np.ptp([fact.entry - fact.processed for fact in facts]) > 0.1
    [plain] = run(model("float32"), asked([0], 5, RECIPES[0]))
    assert all(isnan(fact.entry) for fact in plain.branches[0].settled.facts(5))
