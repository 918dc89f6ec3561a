"""Distances from float64: right on rows that are known, and within bounds on the default model."""

import numpy as np
import pytest

from bench import quality
from bench.quality import Distance


def test_equal_rows_have_no_distance():
    rows, distance = np.array([[0.0, 1, 2], [3, 1, 0]]), Distance()
    distance.add(rows.astype(np.float32), rows, [2, 1])
    assert (distance.error, distance.largest, distance.kl) == (0, 0, [0, 0])
    assert distance.perplexity == 0 and distance.agreed == 2


def test_distances_of_known_rows():
    """One row of two tokens: probabilities (1/2, 1/2) beside (3/4, 1/4)."""
    distance = Distance()
    rows = np.array([[np.log(3.0), 0], [0, 0]])
    distance.add(rows, np.array([[1.0, 1], [0, 0]]), [0, 1])  # a shift changes no distribution
    kl = 0.5 * np.log(0.5 / 0.75) + 0.5 * np.log(0.5 / 0.25)
    assert distance.kl == pytest.approx([kl, 0])
    assert distance.error == pytest.approx(np.hypot(np.log(3) - 1, 1) / np.hypot(1, 1))
    assert distance.largest == 1 and distance.agreed == 2
    # token 1 follows: it has 1/4 in place of 1/2, so twice the perplexity
    assert distance.perplexity == pytest.approx(100)


def test_windows_take_turns_and_never_run_short():
    cut = quality.windows(lambda text: list(range(len(text) // 3)), 50, 6)
    assert [len(ids) for ids in cut] == [50] * 6
    assert cut[0] == cut[1] == cut[2] == list(range(50)) and cut[3][0] == 50
    with pytest.raises(ValueError, match="windows of 50 tokens, not 999"):
        quality.windows(lambda text: list(range(len(text))), 50, 999)


def test_only_default_is_bounded():
    far = Distance(1.0, 1.0, 1.0, 0, [1.0], [-2.0], [-1.0])
    figures = {f.what: f for f in quality.told({"default": far, "fast": far})}
    missed = [what for what, figure in figures.items() if not figure.ok]
    assert missed == ["default: relative error of logits", "default: mean KL from float64",
                      "default: perplexity, change"]


@pytest.mark.slow
def test_the_default_model_on_three_hundred_tokens():
    from unspool.files.store import models

    if models()[0][1] is None:
        pytest.skip("the default weights are not here: unspool models fetch smollm2")
    found = quality.measure(100, 3, peer=False)
    assert set(found) == {"default", "fast"} and len(found["default"].kl) == 300
    assert [figure.line() for figure in quality.told(found) if not figure.ok] == []
    assert found["fast"].error > 10 * found["default"].error > 0
