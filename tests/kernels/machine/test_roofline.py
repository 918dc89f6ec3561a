"""The plain reader reads every byte once."""
import numpy as np
import pytest

from unspool.kernels.machine import roofline


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_number_is_read_once_however_often_it_is_asked(threads):
    numbers = np.arange(8 * roofline.PIECE // 8, dtype=np.int64)
    read = roofline.reader(numbers, threads)
    assert [read() for _ in range(5)] == [int(numbers.sum())] * 5
