"""Tensors become arrays without losing a bit."""

import numpy as np
import pytest
import torch

from unspool.models.fingerprint import fingerprint
from unspool.models.planes import Planes
from unspool.models.tensors import Rows, as_arrays


def test_rows_of_the_cpu_are_views():
    logits = torch.zeros(2, 3)
    rows = Rows(logits, Planes([])).rows()
    rows[1, 2] = 5
    assert isinstance(rows, np.ndarray) and logits[1, 2] == 5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.bool])
def test_a_tensor_becomes_the_array_that_it_is(dtype):
    tensor = torch.tensor([[1, 0, 3], [0, 5, 6]]).to(dtype)
    [(name, array)] = as_arrays([("w", tensor)])
    assert name == "w" and array.tolist() == tensor.tolist()


@pytest.mark.parametrize("shape", [(2, 3), (3,), (), (0, 4)])
def test_a_type_that_numpy_lacks_is_given_by_its_bytes(shape):
    tensor = torch.full(shape, 1.5, dtype=torch.bfloat16)
    [(name, array)] = as_arrays([("w", tensor)])
    assert name == "w torch.bfloat16" and array.shape == (*shape, 2)
    assert array.tobytes() == tensor.view(torch.int16).numpy().tobytes()


def test_what_can_be_trained_and_what_lies_transposed_can_be_named():
    weight = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3))
    for kind in (torch.float32, torch.bfloat16):
        names = {fingerprint("", as_arrays([("w", w.to(kind))]))
                 for w in (weight, weight.detach(), weight.T.contiguous().T)}
        assert len(names) == 1
