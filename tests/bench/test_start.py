"""Heavy imports of a fresh interpreter are seen."""

from bench.start import PROBE, fresh


def test_heavy_modules_are_named():
    assert fresh(PROBE + "pass").split() == []
    assert fresh(PROBE + "import numpy").split() == ["numpy"]
