"""The dialect `mlx` against the steps of mlx-lm's processors and sampler, written out in numpy."""
import numpy as np
import pytest
from golden_zoo import one, resolved


# ── the derivation: numpy alone ──────────────────────────────────────────────────────────────────
def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def penalties(x, text, last=20, rep=1.0, pres=0.0, freq=0.0):
    count = np.bincount(np.array(text[-last:], int), minlength=len(x))
    x = np.where(count > 0, np.where(x < 0, x * rep, x / rep), x)
    return x - pres * (count > 0) - freq * count


def sampler(x, p=1.0, min_p=0.0, k=0, t=1.0):
    x = np.log(softmax(x))
    by = np.argsort(x, kind="stable")
    x = x.copy()
    x[by[np.cumsum(np.exp(x[by])) <= 1 - p]] = -np.inf
    x = np.where(x < x.max() + np.log(min_p), -np.inf, x) if min_p else x
    x[np.argsort(-x, kind="stable")[k:] if k else []] = -np.inf
    return softmax(x / t)


# ── and what the dialect makes of the same ───────────────────────────────────────────────────────
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_processors_and_sampler(dtype):
    draw = np.random.default_rng(3)
    for _ in range(100):
        row = draw.normal(0, 2, 30).astype(np.float32).astype(np.float64)
        prompt, out = draw.integers(0, 30, 25).tolist(), draw.integers(0, 30, 9).tolist()
        rep, freq, pres = draw.uniform(0.7, 2), draw.uniform(-1, 1), draw.uniform(-1, 1)
        p, min_p, t = draw.uniform(0.4, 0.99), draw.uniform(0.01, 0.1), draw.uniform(0.3, 2)
        want = sampler(penalties(row, prompt + out, 20, rep, pres, freq), p, min_p, 9, t)
        got = one({"order": "mlx", "repetition_penalty": rep, "frequency_penalty": freq,
                   "presence_penalty": pres, "top_p": p, "min_p": min_p, "top_k": 9, "temp": t},
                  row, prompt, out, dtype)
        np.testing.assert_allclose(got, want, rtol=4e-6, atol=1e-9)


def test_the_penalties_look_at_the_last_20_tokens_and_the_prompt_is_among_them():
    row = np.array([2.0, 2.0, 2.0, 2.0])
    prompt, written = [0] + [1] + [3] * 17, [2, 3]  # token 0 is 21 places back, token 1 is 20
    got = one({"order": "mlx", "repetition_penalty": 2.0, "temp": 1.0}, row, prompt, written)
    np.testing.assert_allclose(got, softmax(np.array([2.0, 1.0, 1.0, 1.0])))
    np.testing.assert_allclose(got[:2], [0.475367, 0.174878], atol=1e-6)
    far = one({"order": "mlx", "repetition_penalty": 2.0, "temp": 1.0, "repeat_last_n": 21},
              row, prompt, written)
    np.testing.assert_allclose(far, [0.25] * 4)


def test_the_temperature_comes_last_and_top_k_after_min_p():
    row = np.array([3.0, 2.0, 1.0, 0.0])
    got = one({"order": "mlx", "min_p": 0.2, "top_k": 3, "temp": 2.0}, row)
    np.testing.assert_allclose(got, [0.622459, 0.377541, 0, 0], atol=1e-6)


def test_it_is_greedy_unasked_whatever_is_cut():
    found = resolved({"order": "mlx", "top_p": 0.9}, [0], 8)
    assert [str(r) for r in found.request.rules] == ["greedy()"]
    assert found.notes == ("top_p=0.9 changes nothing: greedy takes the likeliest token",)
    assert found.params.do_sample is False and found.origin["temperature"] == "dialect"
    for user in ({"do_sample": True}, {"strategy": "sample"}):
        assert resolved({"order": "mlx", **user}, [0], 8).request.rules == ()


def test_exactly_k_are_kept():
    got = one({"order": "mlx", "top_k": 2, "temp": 1.0}, np.array([1.0, 0, 0, 0]))
    assert np.count_nonzero(got) == 2
