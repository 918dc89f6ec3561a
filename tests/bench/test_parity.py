"""Greedy parity with transformers, teacher-forced: some of it always, all of it as a battery."""

import numpy as np
import pytest

from bench import pair, parity
from bench.parity import Disagreement, disagreements
from bench.texts import TEXTS


def rows(*logits):
    return np.array(logits, dtype=np.float32)


def test_equal_rows_agree():
    assert disagreements(rows([0, 2, 1], [5, 1, 1]), rows([0, 1.9, 1.8], [5, 4.9, 1])) == []


def test_a_difference_within_twice_the_tolerance_is_excused():
    theirs = rows([0, 1, 3], [2.001, 2, 0], [2.5, 2, 0])
    mine = rows([0, 1, 3], [2, 2.001, 0], [2, 3, 0])
    near, far = disagreements(theirs, mine)
    assert (near.step, near.theirs, near.mine, near.excused(1e-3)) == (1, 0, 1, True)
    assert near.gap == pytest.approx(0.001, abs=1e-6)
    assert (far.step, far.theirs, far.mine, far.excused(1e-3)) == (2, 0, 1, False)


def test_the_limit_is_twice_the_tolerance_of_a_logit():
    assert Disagreement(0, 1, 2, 0.002).excused(1e-3)
    assert not Disagreement(0, 1, 2, 0.00201).excused(1e-3)


@pytest.mark.parametrize(("found", "kept"), [
    ([], True), ([Disagreement(3, 1, 2, 0.001)], True), ([Disagreement(3, 1, 2, 0.1)], False),
    ([Disagreement(i, 1, 2, 0.001) for i in range(2)], False),
])
def test_one_step_in_a_hundred_may_be_excused_and_none_wrong(monkeypatch, found, kept):
    monkeypatch.setattr(parity, "ids", lambda text: [1])
    monkeypatch.setattr(parity, "compared", lambda prompt, new, numerics: (found, 1e-4))
    figures = list(parity.measure(["a text"], 100))
    assert all(figure.ok for figure in figures) is kept
    assert sum("step" in figure.what and "after" in figure.what for figure in figures) == len(found)


def test_a_large_difference_of_a_logit_is_missed(monkeypatch):
    monkeypatch.setattr(parity, "ids", lambda text: [1])
    monkeypatch.setattr(parity, "compared", lambda prompt, new, numerics: ([], 2e-3))
    [missed] = [figure for figure in parity.measure(["a"], 9) if not figure.ok]
    assert missed.what == "reference: largest difference of a logit"
    assert all(figure.ok for figure in parity.measure(["a"], 9, "default"))


def test_the_texts_are_thirty_two_and_differ():
    assert len(set(TEXTS)) == 32


# ── on the default model ─────────────────────────────────────────────────────────────────────────
@pytest.fixture
def weights():
    from unspool.files.store import models

    if models()[0][1] is None:
        pytest.skip("the default weights are not here: unspool models fetch smollm2")
    yield
    for numerics in parity.TOLERANCE:
        pair.ours(numerics).close()
    for kept in (pair.ours, pair.peer, parity.written):
        kept.cache_clear()


def check(texts, new):
    for numerics in parity.TOLERANCE:
        figures = list(parity.measure(texts, new, numerics))
        assert figures[-4].measured == len(texts) * new > 0
        assert [figure.line() for figure in figures if not figure.ok] == []


def test_four_texts_of_eight_tokens(weights):
    check([TEXTS[i] for i in (0, 2, 8, 17)], 8)


@pytest.mark.battery
@pytest.mark.timeout(1800)
def test_all_texts_of_thirty_two_tokens(weights):
    check(TEXTS, parity.NEW)
