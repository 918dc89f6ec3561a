"""The dialect `sglang` against the steps of its sampler, written out in numpy."""
import numpy as np
import pytest
from golden_zoo import one, resolved


# ── the derivation: numpy alone ──────────────────────────────────────────────────────────────────
def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def sglang(x, out, rep=1.0, freq=0.0, pres=0.0, bias=0.0, t=1.0, k=10**9, p=1.0, min_p=0.0):
    count = np.bincount(np.array(out, int), minlength=len(x))  # of what was written, no prompt
    x = x - freq * count - pres * (count > 0)
    x = np.where(count > 0, np.where(x < 0, x * rep, x / rep), x) + bias
    q = softmax(x / t)
    order = np.argsort(-q, kind="stable")
    rank = np.argsort(order)
    if min_p == 0:  # both cuts look at the same distribution
        before = np.cumsum(q[order])[rank] - q
        q = np.where((before < p) & (rank < k), q, 0)
        return q / q.sum()
    q = np.where(rank < k, q, 0) / q[rank < k].sum()
    q = np.where(np.cumsum(q[order])[rank] - q < p, q, 0)
    q = np.where(q >= min_p * q.max(), q, 0)
    return q / q.sum()


# ── and what the dialect makes of the same ───────────────────────────────────────────────────────
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("min_p", [0.0, 0.05])
def test_penalties_bias_temperature_and_the_cuts(dtype, min_p):
    draw = np.random.default_rng(1)
    for _ in range(100):
        row = draw.normal(0, 2, 30).astype(np.float32).astype(np.float64)
        prompt, out = draw.integers(0, 30, 6).tolist(), draw.integers(0, 30, 9).tolist()
        rep, freq, pres = draw.uniform(0.7, 2), draw.uniform(-1, 1), draw.uniform(-1, 1)
        bias, t = draw.normal(0, 2, 30), draw.uniform(0.3, 2)
        k, p = int(draw.integers(2, 20)), draw.uniform(0.3, 1)
        want = sglang(row, out, rep, freq, pres, bias, t, k, p, min_p)
        got = one({"order": "sglang", "repetition_penalty": rep, "frequency_penalty": freq,
                   "presence_penalty": pres, "logit_bias": dict(enumerate(bias.tolist())),
                   "temperature": t, "top_k": k, "top_p": p, "min_p": min_p},
                  row, prompt, out, dtype)
        np.testing.assert_allclose(got, want, rtol=4e-6, atol=1e-9)


def test_only_what_was_written_is_counted():
    row = np.array([2.0, 2.0, 0.0])
    given = {"repetition_penalty": 2.0, "temperature": 1.0}
    np.testing.assert_allclose(one({"order": "sglang", **given}, row, [0], [1]),
                               [0.665241, 0.244728, 0.090031], atol=1e-6)  # of 2, 1, 0
    np.testing.assert_allclose(one({"order": "vllm", **given}, row, [0], [1]),
                               [0.422319, 0.422319, 0.155362], atol=1e-6)  # of 1, 1, 0


def test_what_is_taken_off_comes_before_what_divides():
    """(3 - 0.5 - 0.5) / 2 = 1, where vLLM has 3 / 2 - 1 = 0.5."""
    row = np.array([3.0, 0.0])
    given = {"repetition_penalty": 2.0, "frequency_penalty": 0.5, "presence_penalty": 0.5}
    np.testing.assert_allclose(one({"order": "sglang", **given}, row, [1], [0])[0], 0.731059,
                               atol=1e-6)
    np.testing.assert_allclose(one({"order": "vllm", **given}, row, [1], [0])[0], 0.622459,
                               atol=1e-6)


def test_top_k_and_top_p_look_at_one_distribution():
    """p = .4 .3 .2 .1 with k = 3 and p = .75: jointly three tokens (.4 + .3 < .75), in turn two
    (of .9, .7778 is enough)."""
    row = np.log([0.4, 0.3, 0.2, 0.1])
    given = {"top_k": 3, "top_p": 0.75, "temperature": 1.0}
    np.testing.assert_allclose(one({"order": "sglang", **given}, row), [4 / 9, 3 / 9, 2 / 9, 0],
                               atol=1e-9)
    np.testing.assert_allclose(one({"order": "vllm", **given}, row), [4 / 7, 3 / 7, 0, 0],
                               atol=1e-9)
    beside = one({"order": "sglang", "min_p": 0.1, **given}, row)  # with min_p in turn there too
    np.testing.assert_allclose(beside, [4 / 7, 3 / 7, 0, 0], atol=1e-9)


def test_exactly_k_are_kept():
    assert np.count_nonzero(one({"order": "sglang", "top_k": 2}, np.array([1.0, 0, 0, 0]))) == 2


def test_it_draws_unasked():
    assert resolved({"order": "sglang"}, [0], 8).request.rules == ()
