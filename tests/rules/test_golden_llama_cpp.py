"""The dialect `llama.cpp` against the steps of its sampler chain, written out in numpy."""
import numpy as np
import pytest
from golden_zoo import one, resolved, seat
from rules_zoo import lefts, logs

ROW = np.log([0.4, 0.3, 0.2, 0.06, 0.03, 0.01])


# ── the derivation: numpy alone ──────────────────────────────────────────────────────────────────
def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def penalties(x, text, last=64, rep=1.0, freq=0.0, pres=0.0):
    count = np.bincount(np.array(text[-last:], int), minlength=len(x))  # prompt and written alike
    hit = np.where(x <= 0, x * rep, x / rep) - count * freq - (count > 0) * pres
    return np.where(count > 0, hit, x)


def prefix(x, size):
    """The `size` likeliest tokens, exactly as many."""
    out = np.full(len(x), -np.inf)
    best = np.argsort(-x, kind="stable")[:size]
    out[best] = x[best]
    return out


def chain(x, k=40, typ=1.0, p=0.95, min_p=0.05, t=0.8):
    x = prefix(x, k)
    if typ < 1:
        q = softmax(x)
        h = -(q[q > 0] * np.log(q[q > 0])).sum()
        far = np.where(q > 0, np.abs(-np.log(np.where(q > 0, q, 1)) - h), np.inf)
        by = np.argsort(far, kind="stable")
        x = np.where(np.isin(np.arange(len(x)), by[:np.argmax(np.cumsum(q[by]) > typ) + 1]), x,
                     -np.inf)
    x = prefix(x, int(np.argmax(np.cumsum(np.sort(softmax(x))[::-1]) >= p - 1e-9)) + 1)
    x = np.where(x >= x.max() + np.log(min_p), x, -np.inf)
    return softmax(x / t)


# ── and what the dialect makes of the same ───────────────────────────────────────────────────────
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("typ", [1.0, 0.8])
def test_the_chain(dtype, typ):
    draw = np.random.default_rng(2)
    for _ in range(100):
        row = draw.normal(0, 2, 60).astype(np.float32).astype(np.float64)
        prompt, out = draw.integers(0, 60, 90).tolist(), draw.integers(0, 60, 9).tolist()
        rep, freq, pres = draw.uniform(0.7, 2), draw.uniform(-1, 1), draw.uniform(-1, 1)
        p, min_p, t = draw.uniform(0.6, 1), draw.uniform(0.01, 0.1), draw.uniform(0.3, 2)
        want = chain(penalties(row, prompt + out, 64, rep, freq, pres), 40, typ, p, min_p, t)
        got = one({"order": "llama.cpp", "repeat_penalty": rep, "frequency_penalty": freq,
                   "presence_penalty": pres, "typ_p": typ, "top_p": p, "min_p": min_p, "temp": t},
                  row, prompt, out, dtype)
        np.testing.assert_allclose(got, want, rtol=4e-6, atol=1e-9)


def test_its_defaults_are_in_force():
    found = resolved({"order": "llama.cpp"}, [0], 60)
    assert [str(r) for r in found.request.rules] == [
        "top_k(40)", "top_p(0.95)", "min_p(0.05)", "temperature(0.8)"]
    assert {found.origin[n] for n in ("top_k", "top_p", "min_p", "temperature")} == {"dialect"}
    # .4 .3 .2 .06 reach .95; all are above .05 * .4; then each to the power 1 / .8
    want = np.array([0.4, 0.3, 0.2, 0.06, 0, 0]) ** 1.25
    np.testing.assert_allclose(one({"order": "llama.cpp"}, ROW), want / want.sum(), rtol=1e-9)
    np.testing.assert_allclose(one({"order": "llama.cpp"}, ROW)[:2], [0.452130, 0.315566],
                               atol=1e-6)


def test_the_temperature_comes_last():
    """At T = 2 a min_p of .2 on 3 2 1 0 keeps two tokens, where others, tempered first, keep all
    four."""
    row = np.array([3.0, 2.0, 1.0, 0.0])
    given = {"min_p": 0.2, "temperature": 2.0, "top_p": 1.0, "top_k": 0}
    assert np.flatnonzero(one({"order": "llama.cpp", **given}, row)).tolist() == [0, 1]
    assert np.flatnonzero(one({"order": "hf", **given}, row)).tolist() == [0, 1, 2, 3]


def test_the_penalties_look_at_the_last_64_tokens_and_the_prompt_is_among_them():
    row = np.array([2.0, 2.0, 2.0, 2.0])
    calm = {"order": "llama.cpp", "top_p": 1.0, "min_p": 0.0, "temperature": 1.0}
    prompt, written = [0] + [1] + [3] * 60, [2, 3, 3]  # token 0 is 65 places back, token 1 is 64
    got = one({**calm, "repetition_penalty": 2.0}, row, prompt, written)
    np.testing.assert_allclose(got, softmax(np.array([2.0, 1.0, 1.0, 1.0])), rtol=1e-9)
    got = one({**calm, "presence_penalty": 1.0, "frequency_penalty": 0.5}, row, prompt, written)
    np.testing.assert_allclose(got, softmax(2 - np.array([0, 1.5, 1.5, 1 + 0.5 * 62])), rtol=1e-9)
    far = one({**calm, "repetition_penalty": 2.0, "repeat_last_n": -1}, row, prompt, written)
    np.testing.assert_allclose(far, [0.25] * 4)
    near = one({**calm, "repetition_penalty": 2.0, "repeat_last_n": 2}, row, prompt, written)
    np.testing.assert_allclose(near, softmax(np.array([2.0, 2.0, 2.0, 1.0])))


def test_exactly_k_are_kept():
    got = one({"order": "llama.cpp", "top_k": 2, "min_p": 0.0}, np.array([1.0, 0, 0, 0]))
    assert np.count_nonzero(got) == 2


def test_xtc_is_ahead_of_the_temperature_and_spares_nothing():
    """Of .4 .3 .2 the two above .25 are top choices, and the likeliest goes, though it is the end
    token."""
    given = {"order": "llama.cpp", "xtc_probability": 1.0, "xtc_threshold": 0.25, "top_p": 1.0,
             "temperature": 5.0}
    assert one(given, ROW, ends=(0,))[0] == 0
    assert one({**given, "order": "unspool"}, ROW, ends=(0,))[0] > 0


def test_mirostat_takes_the_place_of_the_chain():
    """Version 2 with tau 1: at first tokens of more than 2 bits go; a token of 3 bits among those
    that were left moves the bound from 2 to 2 - 0.1 * (3 - 1)."""
    found = resolved({"order": "llama.cpp", "mirostat": 2, "mirostat_tau": 1.0, "top_k": 3,
                      "repetition_penalty": 1.5}, [0], 6)
    assert [str(r) for r in found.request.rules] == ["temperature(0.8)", "mirostat_2(1, 0.1)"]
    assert [n.partition("=")[0] for n in found.notes] == ["repetition_penalty", "top_k"]
    row = np.log([0.5, 0.26, 0.2, 0.04]) * 0.8
    assert np.flatnonzero(np.exp(logs(*first(found, row, ())))).tolist() == [0, 1]
    assert np.flatnonzero(np.exp(logs(*first(found, row, (-3 * np.log(2),))))).tolist() == [0]


def first(found, row, processed):
    place = seat(found.request.rules, [0], [1] * len(processed), processed)
    return lefts(row[None], [place])[0], len(row)
