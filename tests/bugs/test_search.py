"""B03 the end token kept, B11 scores over the right length, B13 many end tokens."""
import itertools

import pytest
import torch
from bug_zoo import asked, loaded, random_table, run, texts, tl
from models_zoo import markov

from unspool.engine.engine import Engine
from unspool.memories import Dense
from unspool.rules import greedy
from unspool.strategies import Beam, Sample


def chain(size=6):
    table = torch.full((size, size), -4.0)
    for i in range(size - 1):
        table[i, i + 1] = 4.0
    return table


@pytest.mark.parametrize("strategy", [Sample(), Beam(2)], ids=["greedy", "beams"])
def test_b03_the_end_token_is_kept_and_nothing_is_put_behind_it(strategy):
    """In a batch of two whose rows end at different steps; there are no pads."""
    rules = (greedy(),) if isinstance(strategy, Sample) else ()
    jobs = run(markov(chain()), *(asked(p, 6, strategy, rules, ends=[4]) for p in ([3], [0])))
    assert [texts(job) for job in jobs] == [[[4]], [[1, 2, 3, 4]]]
    assert {job.branches[0].ended.which for job in jobs} == {4}


@pytest.mark.parametrize("params", [{}, {"num_beams": 2}])
def test_b03_through_the_library(made, params):
    lm = loaded(made, markov(chain()), ends=[4])
    outs = lm.generate([[3], [0]], max_new_tokens=6, **params)
    assert [out.token_ids for out in outs] == [[4], [1, 2, 3, 4]]
    assert [(o.finish_reason, o.stop_reason, o.usage.completion) for o in outs] == [
        ("stop", 4, 1), ("stop", 4, 4)]


def every_text(table, last, ends, new, penalty):
    """(score, tokens) of all finished texts: sum of log p over length ** penalty, end counted."""
    logs = torch.log_softmax(torch.as_tensor(table, dtype=torch.float64), -1).tolist()
    out = []

    def grow(tokens, last, total):
        if len(tokens) == new or (tokens and tokens[-1] in ends):
            out.append((total / len(tokens) ** penalty, tokens))
            return
        for token, logprob in enumerate(logs[last]):
            grow([*tokens, token], token, total + logprob)

    grow([], last, 0.0)
    return sorted(out, key=lambda x: -x[0])


@pytest.mark.parametrize("penalty", [0.0, 1.0, 2.0, -1.0])
@pytest.mark.parametrize("ends", [(4,), (2, 3, 4)])
@pytest.mark.parametrize("prompt", [[1], [2] * 9 + [1]], ids=["short", "long"])
def test_b11_scores_are_sums_over_the_written_length(prompt, ends, penalty):
    table = random_table(3, 5, 1.5)
    search = Beam(64, n=5, length_penalty=penalty, early_stopping="never", longest=4,
                  ends=len(ends))
    [job] = run(markov(table), asked(prompt, 4, search, ends=ends))
    want = every_text(table, 1, ends, 4, penalty)[:5]
    assert texts(job) == [tokens for _, tokens in want]
    assert [score for _, score in job.strategy.ranked(job)] == pytest.approx(
        [score for score, _ in want], abs=1e-6)


def test_b13_every_step_has_three_living_beams_with_ten_end_tokens():
    table, ends = random_table(1, 16, 1.0), range(6, 16)
    engine = Engine(markov(table), Dense())
    job = engine.add(asked([0], 6, Beam(3, n=3, ends=10), ends=ends))
    for step in itertools.count(1):
        engine.step()
        if not job.live:
            break
        assert len(job.live) == 3 and not any(b.tokens[-1] in ends for b in job.live)
        assert step < 6
    got = texts(job)
    assert len(got) == 3 and len(set(map(tuple, got))) == 3
    scores = {tuple(tokens): score for score, tokens in every_text(table, 0, ends, 6, 1.0)}
    for branch, score in job.strategy.ranked(job):
        assert score == pytest.approx(scores[tuple(branch.tokens)], abs=1e-6)


def test_b13_wide_enough_it_is_the_enumeration():
    table, ends = random_table(1, 16, 1.0), range(6, 16)
    search = Beam(700, n=8, early_stopping="never", longest=3, ends=10)
    [job] = run(markov(table), asked([0], 3, search, ends=ends))
    want = every_text(table, 0, ends, 3, 1.0)[:8]
    assert texts(job) == [tokens for _, tokens in want]


def test_b13_as_many_answers_as_beams_and_all_different():
    [job] = run(tl(), asked([5, 9, 2], 12, Beam(8, n=8)))
    got = texts(job)
    assert len(got) == 8 and len(set(map(tuple, got))) == 8
    scores = [score for _, score in job.strategy.ranked(job)]
    assert scores == sorted(scores, reverse=True)
