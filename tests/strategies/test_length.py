"""Ranks on paper: lengths by each formula, coverage on hand-written attention weights."""
import math

import pytest
from beams_zoo import answers, every_text, search, table

from unspool.core.errors import ParameterError
from unspool.core.job import Job
from unspool.core.prefix import Candidate
from unspool.core.request import Request
from unspool.core.slot import Slot
from unspool.stops.length import MaxNew
from unspool.stops.tokens import EndTokens
from unspool.strategies import Beam
from unspool.strategies.length import best_rank, coverage, coverage_excess, rank

KINDS = ("plain", "gnmt", "average")
ALPHAS = (-1.0, 0.0, 0.6, 1.0, 2.0)

# Three written tokens over four of the source: the sums are 1.7, 0.7, 0.5 and 0.1.
ATTENTION = ((0.7, 0.2, 0.1, 0.0), (0.6, 0.3, 0.0, 0.1), (0.4, 0.2, 0.4, 0.0))


def test_each_kind_is_its_formula():
    assert rank(-6.0, 4, "plain", 0.5) == -3.0
    assert rank(-6.0, 4, "plain", -1.0) == -24.0
    assert rank(-6.0, 7, "gnmt", 0.5) == pytest.approx(-6.0 / math.sqrt(2))
    assert rank(-6.0, 1, "gnmt", 9.0) == -6.0  # the first token is free
    assert rank(-6.0, 4, "average", 7.0) == -1.5
    assert rank(-6.0, 4) == rank(-6.0, 4, "average")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_best_rank_is_the_best_of_all_lengths(kind, alpha):
    assert best_rank(-3.0, (2, 9), kind, alpha) == max(
        rank(-3.0, length, kind, alpha) for length in range(2, 10))


def test_coverage_on_hand_written_attention():
    want = math.log(1.0) + math.log(0.7) + math.log(0.5) + math.log(0.1)
    assert coverage(ATTENTION, 0.2) == pytest.approx(0.2 * want)
    assert coverage([(1.7, 0.7, 0.5, 0.1)], 0.2) == pytest.approx(0.2 * want)  # summed before
    assert coverage([(1.0, 2.0)], 5.0) == 0.0
    assert coverage([(1.0, 0.0)], 5.0) == -math.inf  # a token that was never looked at


def test_excess_coverage_on_hand_written_attention():
    assert coverage_excess(ATTENTION) == pytest.approx(0.7)
    assert coverage_excess([(1.5, 0.2, 0.3), (0.5, 0.9, 0.6)]) == pytest.approx(1.0 + 0.1)
    assert coverage_excess([(1.0, 0.0)]) == 0.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("seed", range(3))
def test_full_width_finds_the_argmax_of_every_kind(kind, alpha, seed):
    """`early_stopping` "never" may not end too early for any of them."""
    rows, ends = table(seed, 5), (3, 4)
    texts = every_text(rows, ends, 4)
    want = {t: rank(s, len(t), kind, alpha) for t, s in texts.items()}
    beam = Beam(len(texts), n=4, length_penalty=alpha, early_stopping="never", longest=4, ends=2,
                kind=kind)
    got = answers(search(rows, beam, ends, 4))
    assert [s for _, s in got] == pytest.approx(sorted(want.values(), reverse=True)[:4])
    assert dict(got) == pytest.approx({t: want[t] for t, _ in got})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("worst", [-0.7, -0.5, -0.1, -0.01])
def test_never_ends_before_a_longer_text_could_win_and_no_later(kind, alpha, worst):
    """`worst`: the rank of the finished text; the living one has -0.6 and one token, of ten."""
    beam = Beam(1, length_penalty=alpha, early_stopping="never", longest=10, kind=kind)
    job = Job(Request((0,), beam))
    [root] = job.branches
    [kept] = [g.scored for g in beam.children(root, Slot(None, top=[Candidate(1, 0, -0.6, 1, 0)]))]
    could = max(rank(-0.6, length, kind, alpha) for length in range(1, 11)) > worst
    assert beam.done([(worst, root)], [kept]) is not could


# ── coverage within a search ─────────────────────────────────────────────────────────────────────
def attended(job, weights):
    """Token 1 ends; token 2 goes on. A slot's attention is the next of `weights`."""
    for branch in job.live:
        top = [Candidate(1, -0.5, -0.5, 1, -0.1), Candidate(2, -0.9, -0.9, 2, -0.1)]
        job.slots[branch] = [Slot(top[0], top=top, attention=weights[branch.written])]
    job.decide()


def test_a_search_sums_the_attention_of_its_texts():
    stops = (EndTokens(frozenset({1})), MaxNew(3))
    job = Job(Request((0,), Beam(1, n=3, coverage=2.0, longest=3), stops=stops))
    weights = [(0.9, 0.1), (0.2, 0.8), (0.5, 0.5)]
    for _ in weights:
        attended(job, weights)
    found = {tuple(b.tokens): score for b, score in job.strategy.ranked(job)}
    assert found == pytest.approx({
        (1,): -0.5 + 2 * (math.log(0.9) + math.log(0.1)),
        (2, 1): (-0.9 - 0.5) / 2 + 2 * math.log(0.9),
        (2, 2, 1): (-0.9 - 0.9 - 0.5) / 3})
    assert max(found, key=found.get) == (2, 1) or found[2, 2, 1] > found[2, 1]


def test_coverage_asks_for_attention_and_refuses_a_model_that_has_none():
    assert Beam(2, coverage=0.1).reads.attention and not Beam(2).reads.attention
    job = Job(Request((0,), Beam(2, coverage=0.1)))
    with pytest.raises(ParameterError, match="has no source"):
        attended(job, [()])
