import math

import numpy as np
import pytest

from unspool.core.errors import ParameterError
from unspool.core.schedule import Schedule
from unspool.mixes.numbers import check, real

BAD = [math.nan, math.inf, -1, 3, "1", None, True, Schedule(((0, 1), (5, 3))), np.ones(2), 10**400]


@pytest.mark.parametrize("value", BAD, ids=repr)
def test_what_is_no_number_of_the_range_is_refused_by_name(value):
    with pytest.raises(ParameterError, match=r"some_name=.*must be a number in 0\.\.2") as caught:
        check("some_name", value, 0, 2)
    assert caught.value.name == "some_name"


@pytest.mark.parametrize("value", [0, 2.0, np.float32(1), Schedule(((0, 0), (9, 2)))], ids=repr)
def test_the_others_pass(value):
    check("some_name", value, 0, 2)


def test_a_strict_range_does_not_hold_its_low_end():
    check("some_name", 1e-9, 0, 2, strict=True)
    with pytest.raises(ParameterError, match=r"0<\.\.2"):
        check("some_name", 0, 0, 2, strict=True)


def test_real_numbers_of_any_library():
    assert real(np.float64(2)) == 2.0 and real(np.array(2.0)) == 2.0
    assert math.isnan(real("2"))
