"""Confidence-gated paths by hand-written slots, and on a model beside the samples they are."""
from math import inf, isclose

import pytest
from searches_zoo import (
    END,
    PROMPT,
    Last,
    answers,
    decide,
    fact,
    job_of,
    last_of,
    likeliest,
    logprobs,
    program,
    reasons,
    request,
    run,
    slot,
    texts,
)

from unspool.core.edits import Draft
from unspool.core.errors import ParameterError
from unspool.core.job import Job
from unspool.strategies import Gated, Sample
from unspool.strategies.gated import trust


def confidence(tokens, top=5):
    """The mean over the tokens, by the definition."""
    rows = logprobs([*PROMPT, *tokens])[len(PROMPT) - 1:-1]
    return sum(-row[likeliest(row, top)].mean() for row in rows) / len(tokens)


def sure(token, confidence):
    return slot(fact(token), raw=((1, -confidence), (2, -confidence)))


def gated(count, threshold=1.0, window=2):
    return job_of(Gated(count, threshold, window))


def step(job, **confidences):
    """Each living path writes a token; `c0`: the confidence of choice 0."""
    decide(job, {b: [sure(1, confidences[f"c{b.choice}"])] for b in job.live
                 if f"c{b.choice}" in confidences})


# ── on a model ───────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("threshold", [-inf, 0.0])
def test_a_gate_that_lets_all_pass_ranks_samples_by_their_confidence(threshold):
    job, plain = run(Gated(6, threshold, 2, n=6)), run(Sample(6))
    want = sorted(((confidence(t), t) for t in texts(plain)), key=lambda a: -a[0])
    assert [t for t, _ in answers(job)] == [t for _, t in want]
    assert [s for _, s in answers(job)] == pytest.approx([s for s, _ in want])


def test_paths_below_the_gate_are_given_up_and_the_rest_are_the_samples():
    job, plain = run(Gated(8, 2.3, 2, n=8), new=12), run(Sample(8), new=12)
    samples = {b.choice: b.tokens for b in plain.branches}
    kept = {b.choice: b.tokens for b in job.branches}
    assert 0 < len(kept) < 8 and all(samples[choice] == text for choice, text in kept.items())
    assert job.usage.computed < plain.usage.computed
    assert all(r.startswith("confidence ") and r.endswith("over 2 tokens is below 2.3")
               for r in reasons(job))


def test_the_most_stubborn_path_remains():
    job = run(Gated(8, inf, 2))
    assert len(job.branches) == 1 and len(reasons(job)) == 7
    [branch] = job.branches
    assert branch.tokens == run(Sample(8)).branches[branch.choice].tokens


def test_answers_are_weighed_by_confidence():
    count = 16
    job, plain = run(Gated(count, -inf, extractor=Last())), run(Sample(count))
    weights = {}
    for text in texts(plain):
        if last_of(text) is not None:
            weights[last_of(text)] = weights.get(last_of(text), 0) + confidence(text)
    best = max(weights, key=weights.get)
    [(text, score)] = answers(job)
    assert last_of(text) == best and isclose(score, weights[best] / sum(weights.values()))
    assert text == max((t for t in texts(plain) if last_of(t) == best), key=confidence)


def test_without_any_answer_the_surest_is_returned():
    assert answers(run(Gated(4, -inf, extractor=Last(())))) == answers(run(Gated(4, -inf)))


def test_only_the_tokens_of_its_own_stage_count():
    job = run(program(Sample(2), Gated(4, -inf), 2, takes=2))
    assert len(job.branches) == 4
    assert {trust(b).length for b in job.branches} == {b.written - 2 for b in job.branches}


# ── by hand ──────────────────────────────────────────────────────────────────────────────────────
def test_a_path_falls_when_its_whole_window_is_unsure():
    job = gated(2)
    step(job, c0=0.1, c1=2.0)  # one token is no window yet
    step(job, c0=1.8, c1=2.0)
    assert trust(job.live[0]).fell == (2, pytest.approx(0.95))
    step(job, c0=9.0, c1=2.0)
    assert [b.choice for b in job.live] == [1]
    assert reasons(job) == ["confidence 0.95 over 2 tokens is below 1"]


def test_of_those_that_fall_together_the_surest_remains_and_goes_on():
    job = gated(3)
    step(job, c0=0.1, c1=0.1, c2=0.1)
    step(job, c0=0.1, c1=0.3, c2=0.1)
    step(job, c0=0.1, c1=0.1, c2=0.1)
    step(job, c1=0.1)
    assert [(b.choice, b.written) for b in job.live] == [(1, 4)]


def test_an_ended_text_is_kept_and_outlasts_the_living():
    job = gated(2)
    one, two = job.branches
    decide(job, {one: [sure(END, 0.1)], two: [sure(1, 0.1)]})
    step(job, c1=0.1)
    step(job, c1=0.1)
    assert job.branches == [one] and not job.live


def test_a_path_ahead_by_a_draft_waits_for_the_others():
    """It fell at two tokens, the other has one: the other may fall first."""
    def course(second):
        job = Job(request(Gated(2, 1.0, 2), new=50))
        ahead, behind = job.branches
        job.apply([Draft(ahead, (1, 1))])
        right = [sure(1, 0.5) for _ in range(3)]
        for drafted in right[:2]:
            drafted.drafted = fact(1)
        decide(job, {ahead: right, behind: [sure(1, 0.5)]})
        assert (ahead.written, behind.written) == (3, 1) and trust(ahead).fell == (2, 0.5)
        decide(job, {ahead: [sure(1, 0.5)], behind: [sure(1, second)]})
        assert job.branches == [ahead, behind] and ahead.written == 3
        decide(job, {behind: [sure(1, 0.5)]})
        return [b.choice for b in job.live]

    assert course(9.0) == [1]
    assert course(0.4) == [0]


@pytest.mark.parametrize("how", [{"count": 0}, {"window": 0}, {"top": 0}, {"n": 3},
                                 {"threshold": float("nan")}])
def test_impossible_numbers_are_refused_by_name(how):
    with pytest.raises(ParameterError, match=f"{next(iter(how))}="):
        Gated(**{"count": 2, "threshold": 1.0, **how})
