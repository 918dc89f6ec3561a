"""The reference kernels against sums written out by hand."""

import math

import numpy as np
import pytest
import torch

from unspool.kernels import reference


def noise(*shape, seed=0, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def by_hand(q, k, v, start, window, scale):
    """Attention with plain loops and no masks: each query sums over the keys it may see."""
    out = np.zeros((q.shape[0], q.shape[1], v.shape[2]))
    group = q.shape[1] // k.shape[1]
    for i in range(q.shape[0]):
        last = start + i
        first = 0 if window is None else max(0, last - window + 1)
        for h in range(q.shape[1]):
            kept = range(first, min(last + 1, len(k)))
            if not kept:
                continue
            dots = [float(q[i, h] @ k[j, h // group]) * scale for j in kept]
            weights = np.exp(np.array(dots) - max(dots))
            weights /= weights.sum()
            for weight, j in zip(weights, kept, strict=True):
                out[i, h] += weight * v[j, h // group].numpy()
    return torch.from_numpy(out)


@pytest.mark.parametrize("heads, kv_heads", [(4, 4), (4, 2), (4, 1)])
@pytest.mark.parametrize("window", [None, 1, 3, 8, 100])
@pytest.mark.parametrize("n, total", [(1, 1), (1, 12), (5, 5), (5, 12), (12, 12)])
def test_attention_is_the_written_out_sum(heads, kv_heads, window, n, total):
    q, k = noise(n, heads, 6), noise(total, kv_heads, 6, seed=1)
    v = noise(total, kv_heads, 4, seed=2)
    got = reference.attend(q, k, v, total - n, window=window, scale=0.4)
    torch.testing.assert_close(got, by_hand(q, k, v, total - n, window, 0.4))


def test_many_queries_are_scored_in_parts_with_the_same_result():
    n = 2 * reference.QUERIES + 3
    q, k, v = noise(n, 2, 4), noise(n, 1, 4, seed=1), noise(n, 1, 4, seed=2)
    whole = reference.attend(q, k, v, 0, scale=0.5)
    each = [
        reference.attend(q[i : i + 1], k[: i + 1], v[: i + 1], i, scale=0.5)
        for i in range(0, n, 97)
    ]
    torch.testing.assert_close(whole[::97], torch.cat(each))


def test_what_stands_after_a_query_is_never_read():
    q, k, v = noise(3, 2, 4), noise(9, 2, 4, seed=1), noise(9, 2, 4, seed=2)
    want = reference.attend(q, k[:6], v[:6], 3, scale=0.5)
    k[6:], v[6:] = math.nan, math.nan
    torch.testing.assert_close(reference.attend(q, k, v, 3, scale=0.5), want)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_b08_a_query_that_sees_nothing_gives_zeros(dtype):
    q = noise(2, 2, 4, dtype=torch.float64).to(dtype)
    empty = torch.zeros(0, 1, 4, dtype=dtype)
    assert not reference.attend(q, empty, empty, 0, scale=0.5).any()
    # keys at 0..2 only, queries far beyond the window
    k = noise(3, 1, 4, seed=1).to(dtype)
    assert not reference.attend(q, k, k, 20, window=4, scale=0.5).any()
    # one query with a key, one without
    mixed = reference.attend(q, k, k, 5, window=4, scale=0.5)
    assert mixed[0].isfinite().all() and mixed[0].any() and not mixed[1].any()


def test_b05_a_window_of_eight_is_eight_keys():
    q, k, v = noise(20, 2, 4), noise(20, 2, 4, seed=1), noise(20, 2, 4, seed=2)
    base = reference.attend(q, k, v, 0, window=8, scale=0.5)
    for query in (12, 19):
        felt = []
        for key in range(20):
            other = v.clone()
            other[key] += 1
            out = reference.attend(q, k, other, 0, window=8, scale=0.5)
            if (out[query] - base[query]).abs().max() > 1e-9:
                felt.append(key)
        assert felt == list(range(query - 7, query + 1))


def test_rms_norm():
    x, weight = noise(5, 8), noise(8, seed=1)
    want = x / ((x**2).mean(-1, keepdim=True) + 1e-5).sqrt() * weight
    torch.testing.assert_close(reference.rms_norm(x, weight, 1e-5), want)
    # the sum is taken in float32: 300 squared is beyond float16
    big = torch.full((1, 8), 300.0, dtype=torch.float16)
    got = reference.rms_norm(big, torch.ones(8, dtype=torch.float16), 1e-6)
    assert got.dtype == torch.float16 and torch.equal(got, torch.ones_like(got))


def test_swiglu():
    gate, up = noise(3, 4), noise(3, 4, seed=1)
    want = gate / (1 + (-gate).exp()) * up
    torch.testing.assert_close(reference.swiglu(gate, up), want)


def test_rotation_turns_pairs_as_complex_numbers():
    x = noise(4, 2, 6)
    frequencies, positions = [1.0, 0.3, 0.05], [0, 1, 7, 100]
    cos, sin = reference.angles(positions, frequencies, 1.5)
    got = reference.rotate(x, cos, sin)
    turned = torch.complex(x[..., :3], x[..., 3:]) * torch.polar(
        torch.tensor(1.5, dtype=torch.float64),
        torch.outer(torch.tensor(positions), torch.tensor(frequencies, dtype=torch.float64)),
    ).unsqueeze(1)
    torch.testing.assert_close(got, torch.cat((turned.real, turned.imag), -1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_b09_angles_of_far_positions_are_not_rounded(dtype):
    positions = [20011, 20012]
    frequencies = [1e4 ** (-2 * i / 64) for i in range(32)]
    cos, sin = reference.angles(positions, frequencies)
    assert cos[:, 0].tolist() == pytest.approx([0.5856, 0.9985], abs=4e-3)
    # turning the unit pairs shows the angles that a model of this type uses
    unit = torch.cat((torch.ones(2, 1, 32), torch.zeros(2, 1, 32)), -1).to(dtype)
    got = reference.rotate(unit, cos, sin).double()[:, 0]
    exact = np.outer(positions, frequencies)
    assert abs(got[:, :32].numpy() - np.cos(exact)).max() < 8e-3
    assert abs(got[:, 32:].numpy() - np.sin(exact)).max() < 8e-3
