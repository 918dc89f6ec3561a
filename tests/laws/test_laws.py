"""Every law on every setting; and every strategy and memory of the packages has a setting."""
import laws
import pytest

import unspool.strategies
from unspool.memories import MEMORIES


@pytest.mark.parametrize("name", laws.EVERY)
@pytest.mark.parametrize("law", laws.MATRIX, ids=lambda law: law.__name__)
def test_law_holds(law, name):
    law(name)
    assert laws.EVERY[name]


@pytest.mark.parametrize("law", laws.SINGLE, ids=lambda law: law.__name__)
def test_single_law_holds(law):
    law()
    assert law.__name__


def test_every_strategy_is_in_the_matrix():
    found = {getattr(unspool.strategies, name) for name in unspool.strategies.__all__}
    assert found == {type(setting.strategy) for setting in laws.EVERY.values()}


def test_every_memory_obeys_the_protocol():
    assert {"dense", "none"} <= set(MEMORIES)
    assert all(make().exact for make in MEMORIES.values())
