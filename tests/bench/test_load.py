"""The parts of loading are measured where the code has them."""

import pytest

from bench.load import WHOLE, seconds


def test_every_part_of_loading_is_seen():
    from unspool.files.store import models

    if models()[0][1] is None:
        pytest.skip("the default weights are not here: unspool models fetch smollm2")
    spent = seconds()
    whole = spent.pop(WHOLE)
    assert len(spent) == 6 and min(spent.values()) > 0
    assert max(spent.values()) <= whole
