"""Beams that draw, against the probabilities that they must have: chi-square of many runs."""
import itertools
import math
import random
from collections import Counter

import pytest
from beams_zoo import (
    answers,
    every_text,
    fact,
    forward,
    job_of,
    search,
    slot_of,
    staged,
    table,
)

from unspool.core.errors import ParameterError
from unspool.strategies import BeamSample, StochasticBeam
from unspool.strategies.stochastic_beam import Kept, log1mexp, log_chance, under, weights

ENDS, RUNS = (3,), 4000
SIGNIFICANT = 1e-4  # of a test that runs with one seed: it passes or fails for good


def chi_square(counts, chances, runs):
    """The statistic and its degrees of freedom; what is expected less than five times is one."""
    rare = [k for k, p in chances.items() if p * runs < 5]
    cells = [(counts[k], p * runs) for k, p in chances.items() if p * runs >= 5]
    if rare:
        cells.append((sum(counts[k] for k in rare), sum(chances[k] for k in rare) * runs))
    assert sum(seen for seen, _ in cells) == sum(counts.values())
    return sum((seen - due) ** 2 / due for seen, due in cells), len(cells) - 1


def fits(counts, chances, runs):
    """By Wilson and Hilferty the cube root of chi-square over its degrees is about normal."""
    assert sum(chances.values()) == pytest.approx(1)
    found, degrees = chi_square(counts, chances, runs)
    spread = 2 / (9 * degrees)
    z = ((found / degrees) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
    return math.erfc(z / math.sqrt(2)) / 2 > SIGNIFICANT


def drawn(strategy, rows, longest=3, runs=RUNS):
    noise = random.Random(1)
    for _ in range(runs):
        yield answers(search(rows, strategy, ENDS, longest, noise))


def chances(rows, longest=3):
    return {t: math.exp(s) for t, s in every_text(rows, ENDS, longest).items()}


# ── a sample without replacement ─────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("strategy", [StochasticBeam(1), BeamSample(1),
                                      BeamSample(1, early_stopping=True, length_penalty=0.0)])
def test_a_width_of_1_is_a_sample(strategy):
    rows = table(0)
    counts = Counter(tokens for [(tokens, _)] in drawn(strategy, rows))
    assert fits(counts, chances(rows), RUNS)


@pytest.mark.parametrize("seed", range(2))
def test_stochastic_beams_are_drawn_without_replacement_in_their_order(seed):
    """The chance of each ordered pair: p(a) p(b) / (1 - p(a))."""
    rows = table(seed, 4, 1.0)
    p = chances(rows, 2)
    pairs = {(a, b): p[a] * p[b] / (1 - p[a]) for a, b in itertools.permutations(p, 2)}
    counts = Counter(tuple(t for t, _ in got) for got in drawn(StochasticBeam(2), rows, 2))
    assert fits(counts, pairs, RUNS)


def test_the_chance_to_be_among_three():
    """Inclusion probabilities: the sum over all ordered triples with the text in them."""
    rows = table(5, 4, 1.0)
    p = chances(rows, 2)
    included = Counter()
    for a, b, c in itertools.permutations(p, 3):
        triple = p[a] * p[b] / (1 - p[a]) * p[c] / (1 - p[a] - p[b])
        included.update({a: triple, b: triple, c: triple})
    counts = Counter(t for got in drawn(StochasticBeam(3), rows, 2) for t, _ in got)
    for text, chance in included.items():
        spread = math.sqrt(RUNS * chance * (1 - chance)) + 1e-9
        assert abs(counts[text] - RUNS * chance) < 4.5 * spread


def test_the_first_of_many_are_the_same_as_few():
    """n: the largest values are answers."""
    rows = table(2)
    few = answers(search(rows, StochasticBeam(4, n=2), ENDS, 4, random.Random(3)))
    many = answers(search(rows, StochasticBeam(4), ENDS, 4, random.Random(3)))
    assert few == many[:2] and len(many) == 4


def test_a_tree_that_fits_is_returned_whole():
    rows = table(1)
    job = search(rows, StochasticBeam(60), ENDS, 3, random.Random(0))
    got, texts = answers(job), every_text(rows, ENDS, 3)
    assert {t for t, _ in got} == set(texts)
    assert [s for _, s in got] == sorted((s for _, s in got), reverse=True)
    assert all(b.score == pytest.approx(texts[tuple(b.tokens)]) for b in job.branches)
    assert [w for _, w in weights(job)] == pytest.approx([lp for lp, _ in weights(job)])  # q = 1


@pytest.mark.parametrize("n", [0, 2])
def test_weights_estimate_sums_over_all_texts(n):
    """Unbiased: the mean of sum f p / q over many runs is sum f p. f: 1, and the length."""
    rows, runs = table(4, 4, 1.0), 3000
    noise, ones, lengths = random.Random(2), [], []
    for _ in range(runs):
        job = search(rows, StochasticBeam(4, n=n), ENDS, 3, noise)
        found = [math.exp(w) for _, w in weights(job)]
        sizes = [len(b.tokens) for b, _ in job.strategy.ranked(job)]
        ones.append(sum(found))
        lengths.append(sum(w * size for w, size in zip(found, sizes, strict=True)))
    p = chances(rows)
    for values, want in ((ones, 1.0), (lengths, sum(x * len(t) for t, x in p.items()))):
        mean = sum(values) / runs
        spread = math.sqrt(sum((v - mean) ** 2 for v in values) / runs / runs)
        assert abs(mean - want) < 4.5 * spread


def test_the_threshold_is_the_largest_value_that_was_given_up():
    """One branch of two is kept: its siblings, the other's children and finished texts count."""
    job = job_of(StochasticBeam(2), ENDS)
    [root] = job.branches
    slot = slot_of([-1.0] * 3, job.strategy.reads, random.Random(0))
    slot.perturbed = [(fact(0, -1.0), 2.0), (fact(3, -1.0), 1.0), (fact(1, -1.0), 0.25)]
    job.slots[root] = [slot]
    job.decide()
    assert [(b.tokens, b.kept) for b in job.branches] == [
        ([0], Kept(2.0, 0.25)), ([3], Kept(1.0, 0.25))]
    [live] = job.live
    slot.perturbed = [(fact(0, -0.1), 5.0), (fact(3, -3.0), 4.9), (fact(1, -3.0), -9.0)]
    job.slots[live] = [slot]
    job.decide()
    values = [b.kept.value for b in job.branches]
    assert values[0] == 2.0  # the largest child has its parent's value
    assert job.branches[1].tokens == [0, 3] and 1.0 < values[1] < 2.0
    assert {b.kept.dropped for b in job.branches} == {1.0}  # the finished one gave way
    assert "value below 2 others" in {r.reason for r in job.trace}


# ── numbers ──────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("value", [-0.5, -3.0, -20.0, -60.0])
def test_a_value_under_its_parent_is_the_plain_formula(value):
    """-log(exp(-parent) - exp(-largest) + exp(-value)), where that loses no digits."""
    parent, largest = 1.5, 0.25
    plain = -math.log(math.exp(-parent) - math.exp(-largest) + math.exp(-value))
    assert under(parent, value, largest) == pytest.approx(plain)
    assert under(parent, largest, largest) == parent


def test_values_keep_their_order_where_differences_are_tiny_and_huge():
    near = [under(0.0, -k * 1e-12, 0.0) for k in range(1, 5)]
    far = [under(3.0, -700.0 * k, 5.0) for k in range(1, 5)]
    for found in (near, far):
        assert found == sorted(found, reverse=True) and len(set(found)) == 4
    assert log1mexp(-1e-20) == pytest.approx(math.log(1e-20))
    assert log_chance(-500.0) == pytest.approx(-500.0) and log_chance(60.0) == 0.0


@pytest.mark.parametrize("make", [lambda: StochasticBeam(0), lambda: StochasticBeam(2, 3)])
def test_numbers_that_make_no_sample_are_refused(make):
    with pytest.raises(ParameterError):
        make()


# ── sampled beams ────────────────────────────────────────────────────────────────────────────────
def test_sampled_beams_ask_for_as_many_draws_as_may_end():
    assert [BeamSample(4, ends=e).reads.perturbed for e in (1, 2, 5)] == [8, 12, 24]
    assert BeamSample(1, ends=5).reads.perturbed == 1
    assert not BeamSample(4).reads.top and not BeamSample(4).reads.pick


def test_one_step_keeps_the_best_of_those_drawn():
    """The draw is of pairs from all branches by their summed log-probabilities; then the likeliest
    of the drawn live on."""
    rows, runs = table(3, 6, 1.0), 3000
    p = {t: math.exp(x) for t, x in enumerate(rows[0])}
    pairs = Counter()
    for drawn_ in itertools.permutations(p, 4):
        chance, left = 1.0, 1.0
        for t in drawn_:
            chance, left = chance * p[t] / left, left - p[t]
        pairs[tuple(sorted(drawn_, key=lambda t: -p[t])[:2])] += chance
    noise, counts = random.Random(5), Counter()
    for _ in range(runs):
        job = job_of(BeamSample(2))
        forward(job, rows, noise)
        job.decide()
        counts[tuple(b.tokens[0] for b in job.live)] += 1
    assert fits(counts, dict(pairs), runs)


def test_the_second_step_draws_across_branches():
    """Two branches, scores log 0.9 and log 0.1, with even rows: pairs of the first are drawn nine
    times as often."""
    noise, firsts, runs = random.Random(6), 0, 3000
    for _ in range(runs):
        job = job_of(BeamSample(2))
        [root] = job.branches
        top = [(fact(4, math.log(0.9)), 1.0), (fact(5, math.log(0.1)), 0.5)]
        job.slots[root] = [slot_of([-1.0], job.strategy.reads, noise)]
        job.slots[root][0].perturbed = top
        job.decide()
        for branch in job.live:
            row = [math.log(0.125)] * 8
            job.slots[branch] = [slot_of(row, job.strategy.reads, noise)]
        drawn_ = job.strategy.grown(job.live, job.slots)
        firsts += sum(g.branch is job.live[0] for g in drawn_)
    assert len(drawn_) == 4
    # of 16 pairs, 8 of weight 9 and 8 of weight 1, four without replacement
    want = expected_of_heavy(8, 9.0, 8, 1.0, 4)
    assert firsts / runs == pytest.approx(want, abs=0.05)


def expected_of_heavy(heavy, weight, light, other, draws):
    if not draws:
        return 0.0
    chance = heavy * weight / (heavy * weight + light * other)
    return (chance * (1 + expected_of_heavy(heavy - 1, weight, light, other, draws - 1))
            + (1 - chance) * expected_of_heavy(heavy, weight, light - 1, other, draws - 1))


@pytest.mark.parametrize("seed", range(4))
def test_every_sampled_beam_has_its_true_rank(seed):
    rows = table(seed, 6)
    job = search(rows, BeamSample(3, n=3, ends=1, length_penalty=0.7), ENDS, 5, random.Random(seed))
    texts = every_text(rows, ENDS, 5)
    got = answers(job)
    assert len({t for t, _ in got}) == len(got) >= 1
    for tokens, score in got:
        assert score == pytest.approx(texts[tokens] / len(tokens) ** 0.7)


# ── in the middle of a request ───────────────────────────────────────────────────────────────────
def test_a_sample_goes_on_from_several_texts():
    job = staged(StochasticBeam(3), 2, [(1, 2), (1, 3)])
    assert [b.kept for b in job.branches] == [None, None]
    rows, noise = table(1), random.Random(1)
    while job.live:
        forward(job, rows, noise)
        job.decide()
    found = dict(answers(job))
    assert len(found) == 3 and all(t[:2] in ((1, 2), (1, 3)) for t in found)
