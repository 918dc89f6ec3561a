"""A decoder of our own families in torch, and torch's devices."""

import numpy as np
import pytest
import torch
from models_zoo import SHAPE

from unspool.core.errors import ParameterError
from unspool.models import torch_load
from unspool.models.load import configure
from unspool.models.weights import expected

CONFIG = configure({"model_type": "llama", **SHAPE})
ON_CPU = {"device": "cpu", "dtype": "float32", "numerics": "reference", "notes": ()}


def made(**asked):
    noise = np.random.default_rng(0)
    arrays = {n: noise.standard_normal(s).astype("f4") for n, s in expected(CONFIG).items()}
    return torch_load.load(CONFIG, arrays, **{**ON_CPU, **asked})


def test_the_model_says_what_it_was_told():
    model = made(numerics="default", notes=("a note",))
    assert (model.numerics, model.notes, model.device) == ("default", ("a note",), "cpu")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_weights_are_in_the_type_asked_for(dtype):
    model = made(dtype=dtype)
    assert model.norm.dtype == getattr(torch, dtype)


def test_the_fingerprint_is_that_of_the_numbers():
    assert made().fingerprint == made(numerics="default", notes=("x",)).fingerprint
    assert made().fingerprint != made(dtype="float64").fingerprint


@pytest.mark.parametrize("device", ["meta", "x", []])
def test_a_device_that_cannot_compute_is_refused(device):
    with pytest.raises(ParameterError, match="cannot be used") as raised:
        torch_load.usable(device)
    assert raised.value.name == "device"


def test_a_device_is_given_by_its_name():
    assert torch_load.usable("cpu:0") == "cpu:0"
    assert torch_load.usable(torch.device("cpu")) == "cpu"
    assert torch_load.best_device() in ("cuda", "mps", "cpu")
