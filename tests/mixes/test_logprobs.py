"""The row as log-probabilities: the same distribution, in other numbers."""
import numpy as np
import pytest
from mixes_zoo import heard, random_rows

from unspool.mixes import LogProbabilities


@pytest.mark.parametrize("vocab", [1, 3, 50])
def test_by_definition(vocab):
    rows = random_rows(3, 4, vocab)
    got = LogProbabilities().blend(heard(LogProbabilities(), rows))
    assert got == pytest.approx(rows - np.log(np.exp(rows).sum(-1, keepdims=True)))
    assert np.exp(got).sum(-1) == pytest.approx(1)


def test_what_is_ruled_out_stays_out():
    got = LogProbabilities().blend(heard(LogProbabilities(), np.array([[0.0, -np.inf, 0.0]])))
    assert got.tolist() == [[-np.log(2), -np.inf, -np.log(2)]]
