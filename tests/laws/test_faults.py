"""The laws have teeth: every planted fault is caught by a law, and none by an exception."""
import faults
import pytest


@pytest.mark.parametrize("fault", faults.FAULTS, ids=lambda fault: fault.__name__)
def test_a_law_catches_the_fault(fault):
    caught, broken = faults.catchers(fault, enough=1)
    assert caught and not broken, broken or "no law says no"
