"""Contrastive search by hand-written slots, and against its definition over whole forwards."""
from math import exp, log

import numpy as np
import pytest
from models_zoo import span
from searches_zoo import (
    END,
    NEW,
    PROMPT,
    VOCAB,
    answers,
    decide,
    fact,
    greedy,
    job_of,
    likeliest,
    logprobs,
    model,
    program,
    reasons,
    run,
    slot,
    texts,
)

from unspool.constraints.choice import choice
from unspool.constraints.vocabulary import Vocabulary
from unspool.core.errors import ParameterError
from unspool.core.sockets import Span
from unspool.rules import constrain
from unspool.strategies import Contrastive, Sample


def states(tokens, weights):
    one = span(list(tokens))
    scores = model(weights).score([Span(one.lease, one.tokens, 0, len(tokens), hidden=True)])
    return np.array(scores.hidden(0), np.float64)


def defined(k, alpha, weights=0, new=NEW, text=()):
    """argmax (1 - alpha) p(v) - alpha max cos(h_v, h_j), each candidate read by a whole forward."""
    text = list(text)
    while len(text) < new and END not in text:
        row = logprobs([*PROMPT, *text], weights)[-1]
        best = []
        for token in likeliest(row, k):
            h = states([*PROMPT, *text, token], weights)
            h /= np.linalg.norm(h, axis=-1, keepdims=True)
            best.append((1 - alpha) * exp(row[token]) - alpha * (h[:-1] @ h[-1]).max())
        text.append(likeliest(row, k)[int(np.argmax(best))])
    return text


@pytest.mark.parametrize("weights", range(6))
@pytest.mark.parametrize("k, alpha", [(4, 0.6), (2, 0.3), (VOCAB, 0.9), (3, 1.0)])
def test_it_is_the_search_of_its_definition(weights, k, alpha):
    assert texts(run(Contrastive(k, alpha), weights=weights)) == [defined(k, alpha, weights)]


def test_these_texts_end_in_both_ways_and_are_not_greedy():
    found = [texts(run(Contrastive(), weights=w))[0] for w in range(6)]
    assert {t[-1] == END for t in found} == {True, False}
    assert found != [greedy(weights=w) for w in range(6)]


@pytest.mark.parametrize("weights", range(6))
@pytest.mark.parametrize("k", [1, 4, VOCAB])
def test_alpha_0_is_greedy_with_its_end(weights, k):
    job, plain = run(Contrastive(k, 0.0), weights=weights), greedy(weights=weights)
    assert texts(job) == [plain]
    assert job.branches[0].ended.reason == ("stop" if plain[-1] == END else "length")


def test_the_score_is_the_sum_of_the_tokens():
    [(text, score)] = answers(run(Contrastive()))
    rows = logprobs([*PROMPT, *text])[len(PROMPT) - 1:]
    assert score == pytest.approx(sum(row[t] for row, t in zip(rows, text, strict=False)))


def test_it_goes_on_in_the_middle_of_a_program_with_each_text():
    job = run(program(Sample(2), Contrastive(), 2, takes=2))
    assert [b.choice for b, _ in job.strategy.ranked(job)] == [0, 1]
    assert [defined(4, 0.6, text=t[:2]) for t in texts(job)] == texts(job)
    assert len({tuple(t) for t in texts(job)}) == 2


def test_it_hands_one_text_over():
    job = run(program(Contrastive(), Sample(), 3))
    assert texts(job)[0][:3] == defined(4, 0.6)[:3] and len(job.branches) == 1


# ── by hand ──────────────────────────────────────────────────────────────────────────────────────
def test_a_step_weighs_probability_against_likeness():
    job = job_of(Contrastive(3, 0.5))
    [root] = job.branches
    top = fact(1, log(0.5)), fact(2, log(0.3)), fact(3, log(0.1))
    decide(job, {root: [slot(*top, fact(4, log(0.09)))]})  # a fourth that it did not ask for
    assert [b.tokens for b in job.live] == [[1], [2], [3]]
    one, two, three = job.live
    follow = slot(fact(5), fact(6), similarity=0.9)
    decide(job, {one: [follow], two: [slot(fact(5), fact(6), similarity=0.6)], three: [follow]})
    assert [b.tokens for b in job.live] == [[2, 5], [2, 6]]  # 0.2 - 0.45, 0.15 - 0.3, ...
    assert sorted(reasons(job)) == ["another token is likelier or less alike"] * 2 + [
        "continued by its likeliest tokens"] * 2


def test_ties_go_to_the_first_of_the_likeliest():
    job = job_of(Contrastive(2, 0.6))
    [root] = job.branches
    decide(job, {root: [slot(fact(4), fact(5))]})
    decide(job, {b: [slot(fact(1), similarity=0.5)] for b in job.live})
    assert [b.tokens for b in job.live] == [[4, 1]]


def test_a_token_that_would_end_the_text_is_a_draft_until_it_wins():
    def ending(similarity):
        job = job_of(Contrastive(2, 0.6))
        [root] = job.branches
        decide(job, {root: [slot(fact(END, log(0.5)), fact(1, log(0.5)))]})
        drafted, plain = job.live
        assert (drafted.tokens, drafted.draft, plain.tokens) == ([], (END,), [1])
        decide(job, {drafted: [slot(fact(END), drafted=fact(END, log(0.5))),
                               slot(fact(2), similarity=similarity)],
                     plain: [slot(fact(3), fact(4), similarity=0.5)]})
        return [(b.tokens, b.ended is not None) for b in job.branches]

    assert ending(0.4) == [([END], True)]
    assert ending(0.6) == [([1, 3], False), ([1, 4], False)]


def test_where_nothing_can_follow_the_end_its_state_is_not_known():
    """The greatest similarity of the others stands in: here only the probability decides."""
    job = job_of(Contrastive(2, 0.6))
    [root] = job.branches
    decide(job, {root: [slot(fact(END, log(0.4)), fact(1, log(0.3)))]})
    drafted, plain = job.live
    decide(job, {drafted: [slot(fact(END), drafted=fact(END, log(0.4)))],
                 plain: [slot(fact(3), similarity=0.5)]})
    assert [b.tokens for b in job.branches] == [[END]]


def test_a_constraint_ends_it():
    rules = (constrain(data=choice([[4, 2], [4, 3, 1], [6]], Vocabulary([b""] * VOCAB), (END,))),)
    [text] = texts(run(Contrastive(), rules=rules))
    assert text in ([4, 2, END], [4, 3, 1, END], [6, END])


def test_a_first_token_that_would_end_the_text_is_no_second_beginning():
    """What memory knew of the prompt is counted at the first forward alone."""
    job = run(Contrastive(VOCAB, 0.0), new=1)
    assert job.usage.drafted == VOCAB and job.usage.cached == 0


def test_what_it_reads():
    assert Contrastive(5).reads.top == 5 and Contrastive().reads.similarity
    assert not Contrastive().reads.pick and not Contrastive(alpha=0).reads.similarity


@pytest.mark.parametrize("how", [{"k": 0}, {"alpha": 1.5}, {"alpha": float("nan")}, {"k": 2.0}])
def test_impossible_numbers_are_refused_by_name(how):
    with pytest.raises(ParameterError, match=f"{next(iter(how))}="):
        Contrastive(**how)
