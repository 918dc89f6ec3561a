"""B20 extreme top_p and temperature, B21 which tokens are kept, in which order."""
import numpy as np
import pytest
import torch
from bug_zoo import asked, loaded, run
from models_zoo import markov
from rules_zoo import kept, probabilities

from unspool.core.errors import ParameterError, RowError
from unspool.engine.engine import Engine
from unspool.memories import Dense
from unspool.rules import greedy, min_p, temperature, top_k, top_p, typical_p
from unspool.strategies import Beam, Sample

TYPES = ["float32", "float16", "bfloat16"]
WAYS = pytest.mark.parametrize("dtype", [np.float32, np.float64])  # kernels, definitions


def normal_row(kind="float32"):
    torch.manual_seed(0)
    return torch.randn(4096).to(getattr(torch, kind)).double().numpy()


# ── B20 ──────────────────────────────────────────────────────────────────────────────────────────
@WAYS
@pytest.mark.parametrize("p", [1e-3, 1e-5, 1e-9, 0.0])
@pytest.mark.parametrize("kind", TYPES)
def test_b20_a_tiny_top_p_leaves_the_argmax(kind, p, dtype):
    row = normal_row(kind)
    assert kept(row, top_p(p), dtype=dtype) == [int(row.argmax())]
    assert probabilities(row, top_p(p), dtype=dtype).max() == 1


@WAYS
@pytest.mark.parametrize("kind", TYPES)
def test_b20_a_tiny_temperature_leaves_the_argmax(kind, dtype):
    row = normal_row(kind)
    biased = row.copy()
    biased[7] = -100
    alone = np.full(4096, -np.inf)
    alone[11] = -3.0
    for logits in (row, biased, alone):
        best = int(logits.argmax())
        gap = logits[best] - np.partition(logits, -2)[-2]
        for t in (1e-2, 1e-4, 1e-12, 1e-40):
            p = probabilities(logits, temperature(t), dtype=dtype)
            assert np.isfinite(p).all() and p.sum() == pytest.approx(1) and p.argmax() == best
            assert p[best] >= 1 - 4096 * np.exp(-gap / t)
        assert probabilities(logits, temperature(1e-12), dtype=dtype)[best] == 1


@WAYS
@pytest.mark.parametrize("k, size", [(1, 1), (4095, 4095), (4096, 4096), (10**9, 4096)])
def test_b20_top_k_above_the_vocabulary_is_off(k, size, dtype):
    assert len(kept(normal_row(), top_k(k), dtype=dtype)) == size


def test_b20_top_k_0_and_minus_1_are_off_and_0_degrees_is_greedy(made):
    lm = loaded(made, markov(torch.tensor([[2.0, 1.0, 0.0]] * 3)))
    for k in (0, -1):
        assert np.isfinite(lm.next([0], top_k=k, temperature=2.0).logprobs).all()
    assert lm.generate([0], temperature=0, max_new_tokens=4).token_ids == [0, 0, 0, 0]


@pytest.mark.parametrize("bad", [{"temperature": float("nan")}, {"temperature": -1.0},
                                 {"temperature": float("inf")}, {"top_p": float("nan")},
                                 {"top_p": 1.5}, {"top_p": -0.1}, {"min_p": 2.0}, {"top_k": -2}])
def test_b20_nan_and_negative_values_are_refused_by_name(made, bad):
    lm = loaded(made, markov(torch.tensor([[2.0, 1.0, 0.0]] * 3)))
    with pytest.raises(ParameterError, match=next(iter(bad))):
        lm.generate([0], max_new_tokens=1, **bad)


@pytest.mark.parametrize("strategy", [Sample(), Beam(2)], ids=["sample", "beam"])
@pytest.mark.parametrize("rules", [(), (greedy(),), (temperature(0.5), top_p(0.9)), (top_k(2),)])
def test_b20_a_row_without_tokens_is_an_error_and_never_an_arbitrary_id(strategy, rules):
    table = torch.tensor([[0.0, 4.0, -2.0]] * 3, dtype=torch.float64)
    table[1] = -torch.inf  # behind token 1 nothing is left

    class Rows:  # -inf times a hidden 0 would be NaN in the model's own head
        def __init__(self, model):
            self.model = model

        def __getattr__(self, name):
            return getattr(self.model, name)

        def score(self, spans):
            last = [t for span in spans for t in span.tokens[len(span.tokens) - span.rows:]]
            return type("Scores", (), {"rows": lambda _: table[last].numpy()})()

    engine = Engine(Rows(markov(torch.zeros(3, 3))), Dense())
    bad = engine.add(asked([1], 4, strategy, rules))
    good = engine.add(asked([0], 1, strategy, rules))
    for _ in range(8):
        engine.step()
    assert isinstance(bad.error, RowError) and bad.branches[0].tokens == []
    assert good.error is None and len(good.branches[0].tokens) == 1


# ── B21 ──────────────────────────────────────────────────────────────────────────────────────────
@WAYS
@pytest.mark.parametrize("p, want", [(0.5, [0]), (0.75, [0, 1]), (0.76, [0, 1, 2])])
def test_b21_top_p_is_the_smallest_set_that_reaches_it(p, want, dtype):
    assert kept(np.log([0.5, 0.25, 0.125, 0.125]), top_p(p), dtype=dtype) == want


@WAYS
def test_b21_each_filter_renormalises(dtype):
    row = np.log([0.4, 0.3, 0.2, 0.1])
    assert kept(row, top_k(2), top_p(0.55), dtype=dtype) == [0]
    assert kept(row, top_p(0.55), top_k(2), dtype=dtype) == [0, 1]


@WAYS
@pytest.mark.parametrize("t, by_min_p, by_top_p", [
    (0.5, [0], [0]), (1.0, [0, 1], [0, 1]), (2.0, [0, 1, 2, 3], [0, 1, 2])])
def test_b21_temperature_before_and_after_the_filters(t, by_min_p, by_top_p, dtype):
    row = [3.0, 2.0, 1.0, 0.0]
    assert kept(row, temperature(t), min_p(0.2), dtype=dtype) == by_min_p
    assert kept(row, temperature(t), top_p(0.8), dtype=dtype) == by_top_p
    assert kept(row, min_p(0.2), temperature(t), dtype=dtype) == [0, 1]


@WAYS
@pytest.mark.parametrize("mass, want", [(0.2, [1]), (0.5, [0, 1]), (0.95, [0, 1, 2])])
def test_b21_typical_may_drop_the_likeliest_and_is_not_off_by_one(mass, want, dtype):
    assert kept(np.log([0.6, 0.3, 0.1]), typical_p(mass), dtype=dtype) == want


@WAYS
def test_b21_typical_reads_a_row_with_holes(dtype):
    assert kept([-np.inf, 2.0, -np.inf, 1.0], typical_p(0.5), dtype=dtype) == [1]


def test_b21_single_batched_and_drafted_rows_keep_the_same(made):
    """One text alone, among others with other recipes, and with a draft: the same facts."""
    rows = torch.randn(9, 9, generator=torch.Generator().manual_seed(2)) * 2
    model = markov(rows)
    recipe = (temperature(0.7), top_k(6), top_p(0.8), min_p(0.05))
    plain = asked([0], 12, rules=recipe, seed=3)
    [alone] = run(model, plain)

    class Known:
        def guess(self, branch):
            return alone.branches[0].tokens[branch.written:branch.written + 3]

    others = [asked([i], 9, rules=r, seed=i) for i, r in enumerate(
        [(), (top_k(2),), (temperature(2.0), min_p(0.3)), recipe[::-1]])]
    batched = run(model, *others, plain)[-1]
    [drafted] = run(model, asked([0], 12, rules=recipe, seed=3, drafter=Known()))
    want = alone.branches[0].facts
    for job in (batched, drafted):
        got = job.branches[0].facts
        assert [f.token for f in got] == [f.token for f in want]
        assert [f.processed for f in got] == pytest.approx([f.processed for f in want], abs=1e-9)
    assert drafted.usage.accepted > 0
