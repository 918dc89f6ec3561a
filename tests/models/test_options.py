"""What may be chosen about the fast CPU path: checked when it is made, refused where it is idle."""

import numpy as np
import pytest

from unspool.core.errors import ParameterError
from unspool.models.options import Options


@pytest.mark.parametrize("name, value", [
    ("threads", 0), ("threads", 257),
    ("threads", -1), ("threads", 1.0), ("threads", True), ("threads", "2"),
    ("kv", "f16"), ("kv", None), ("kv", []), ("kv", np.zeros(2)),
    ("quantize", "int4"), ("quantize", "f32"), ("quantize", False), ("quantize", {}),
])
def test_another_value_is_refused_by_name(name, value):
    with pytest.raises(ParameterError, match=f"^{name}=") as raised:
        Options(**{name: value})
    assert raised.value.name == name


def test_the_defaults_pass_everywhere():
    Options().refuse("it runs in torch")
    Options(threads=None, kv="f32", quantize=None).refuse("it runs in torch")


@pytest.mark.parametrize("name, value", [("threads", 1), ("kv", "int8"), ("quantize", "int8")])
def test_a_choice_is_refused_where_it_means_nothing(name, value):
    with pytest.raises(ParameterError, match=f"{name}={value!r}: it runs in torch, ") as raised:
        Options(**{name: value}).refuse("it runs in torch")
    assert raised.value.name == name
