"""The dialects `vllm` and `vllm-v2` against the steps of its two samplers, written out in numpy."""
import numpy as np
import pytest
from golden_zoo import one, resolved

ROW = np.array([3.0, 2.0, 2.0, 1.0, 0.5, -1.0, -2.0, 0.0])


# ── the derivation: numpy alone ──────────────────────────────────────────────────────────────────
def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def penalised(x, prompt, out, rep=1.0, freq=0.0, pres=0.0):
    count = np.bincount(np.array(out, int), minlength=len(x))
    seen = (count + np.bincount(np.array(prompt, int), minlength=len(x))) > 0
    x = np.where(seen, np.where(x > 0, x / rep, x * rep), x)
    return x - freq * count - pres * (count > 0)


def cut(x, t=1.0, min_p=0.0, k=0, p=1.0):
    x = x / max(t, 0.01)
    x = np.where(softmax(x) < min_p * softmax(x).max(), -np.inf, x)
    x = np.where(x < np.sort(x)[-k], -np.inf, x) if k else x
    order = np.argsort(x, kind="stable")  # ascending; drop while the mass below is <= 1 - p
    keep = np.cumsum(softmax(x)[order]) > 1 - p
    keep[-1] = True
    x[order[~keep]] = -np.inf
    return softmax(x)


# ── and what the dialect makes of the same ───────────────────────────────────────────────────────
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_penalties_then_temperature_then_min_p_then_top_k_and_top_p(dtype):
    draw = np.random.default_rng(0)
    for _ in range(100):
        row = draw.normal(0, 2, 30).astype(np.float32).astype(np.float64)
        prompt, out = draw.integers(0, 30, 6).tolist(), draw.integers(0, 30, 9).tolist()
        rep, freq, pres = draw.uniform(0.7, 2), draw.uniform(-1, 1), draw.uniform(-1, 1)
        t, min_p, k, p = draw.uniform(0.3, 2), draw.uniform(0, 0.1), 12, draw.uniform(0.4, 1)
        want = cut(penalised(row, prompt, out, rep, freq, pres), t, min_p, k, p)
        for order in ("vllm", "vllm-v2"):
            got = one({"order": order, "repetition_penalty": rep, "frequency_penalty": freq,
                       "presence_penalty": pres, "temperature": t, "min_p": min_p, "top_k": k,
                       "top_p": p}, row, prompt, out, dtype)
            np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-9)


def test_a_temperature_below_a_hundredth_is_a_hundredth():
    np.testing.assert_allclose(one({"order": "vllm", "temperature": 0.001}, ROW / 50),
                               softmax(ROW / 50 / 0.01), rtol=1e-9)
    found = resolved({"order": "vllm", "temperature": 0.001}, [0], 8)
    assert [str(r) for r in found.request.rules] == ["temperature(0.01)"]
    assert found.notes == ("temperature=0.001 raised to 0.01, as in vllm",)
    assert str(resolved({"order": "vllm", "temperature": 0}, [0], 8).request.rules) == \
        str(resolved({"temperature": 0}, [0], 8).request.rules)  # greedy as ever


def test_top_k_keeps_ties():
    """Of 3, 2, 2, 1 the two best are three."""
    got = one({"order": "vllm", "top_k": 2}, ROW)
    assert np.flatnonzero(got).tolist() == [0, 1, 2]
    np.testing.assert_allclose(got[:3], [0.576117, 0.211942, 0.211942], atol=1e-6)
    assert np.flatnonzero(one({"order": "unspool", "top_k": 2}, ROW)).tolist() == [0, 1]


def test_it_draws_unasked():
    assert resolved({"order": "vllm"}, [0], 8).request.rules == ()
    assert resolved({"order": "vllm"}, [0], 8).origin["temperature"] == "dialect"


def test_biases_and_ones_own_processors_stand_before_the_penalties_or_between():
    """They do not commute: V1 halves first and divides by the penalty then; in the second runner
    the bias comes first, then the penalty, then the processor. Token 0: logit 1, bias 2, penalty 2,
    and a processor that takes 1 from every positive logit."""
    def less(ids, logits):
        return np.where(logits > 0, logits - 1, logits)

    row = np.array([1.0, 0.0])
    given = {"logit_bias": {0: 2.0}, "repetition_penalty": 2.0, "logits_processor": less,
             "temperature": 1.0}
    v1 = one({"order": "vllm", **given}, row, [0])
    v2 = one({"order": "vllm-v2", **given}, row, [0])
    np.testing.assert_allclose(v1, softmax(np.array([(1 + 2 - 1) / 2, 0.0])))
    np.testing.assert_allclose(v2, softmax(np.array([(1 + 2) / 2 - 1, 0.0])))
    np.testing.assert_allclose([v1[0], v2[0]], [0.731059, 0.622459], atol=1e-6)


def test_a_bias_is_limited_to_100():
    got = one({"order": "vllm", "logit_bias": {1: 500.0}}, np.array([100.0, 0.0]))
    np.testing.assert_allclose(got, [0.5, 0.5])
    assert "logit_bias limited to -100..100, as in vllm" in resolved(
        {"order": "vllm", "logit_bias": {1: 500.0}}, [0], 8).notes


def test_repetition_counts_the_prompt_and_the_others_do_not():
    row = np.array([1.0, 1.0, 0.0])
    got = one({"order": "vllm", "repetition_penalty": 2.0, "frequency_penalty": 0.25,
               "presence_penalty": 0.5}, row, [0, 0], [1, 1])
    np.testing.assert_allclose(got, softmax(np.array([0.5, 0.5 - 0.5 - 0.5, 0.0])))
