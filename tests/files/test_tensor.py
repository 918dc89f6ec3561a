import numpy as np
import pytest

from unspool.core.errors import FormatError
from unspool.files.tensor import Tensor


def tensor(values, type):
    raw = values.view(np.uint8).reshape(-1)
    raw.flags.writeable = False
    return Tensor("w", type, values.shape, raw)


def test_dequantised_is_new_and_writeable():
    stored = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = tensor(stored, "F32")
    values = found.dequantised()
    assert values.tolist() == stored.tolist()
    values[0, 0] = 5
    assert stored[0, 0] == 0


def test_numpy_is_a_view_in_the_stored_type():
    stored = np.arange(4, dtype=np.int64)
    view = tensor(stored, "I64").numpy()
    assert view.dtype == np.int64 and np.shares_memory(view, stored)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1


def test_numpy_of_types_without_a_dtype_is_float32():
    found = tensor(np.array([0x3F80, 0xC000], np.uint16), "BF16")
    assert found.numpy().tolist() == [1.0, -2.0] and found.numpy().dtype == np.float32


def test_errors_name_the_tensor():
    with pytest.raises(FormatError, match="tensor 'w': I64 holds no real numbers"):
        tensor(np.arange(4), "I64").dequantised()


def test_it_prints_without_its_bytes():
    assert repr(tensor(np.zeros((2, 2), np.float16), "F16")) == "Tensor('w', F16, (2, 2))"
