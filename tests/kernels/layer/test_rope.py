"""The table of angles."""
import numpy as np
import pytest

from unspool.kernels import reference
from unspool.kernels.layer.rope import CHUNK, angle_table

FREQUENCIES = [10_000 ** (-i / 16) for i in range(16)]


@pytest.mark.parametrize("factor", [1.0, 0.7])
def test_angles_are_the_references(factor):
    cos, sin = angle_table(FREQUENCIES, factor, 3000)
    want = reference.angles(range(len(cos)), FREQUENCIES, factor)
    np.testing.assert_allclose(cos, want[0].numpy(), rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(sin, want[1].numpy(), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("positions", [1, CHUNK - 1, CHUNK, CHUNK + 1, 1000])
def test_an_angle_does_not_depend_on_the_tables_length(positions):
    whole, part = angle_table(FREQUENCIES, 1.3, 2000), angle_table(FREQUENCIES, 1.3, positions)
    for a, b in zip(whole, part, strict=True):
        assert positions <= len(b) < positions + CHUNK
        np.testing.assert_array_equal(a[: len(b)], b)
