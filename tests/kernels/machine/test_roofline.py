"""The plain reader reads every byte once."""
import numpy as np

from unspool.kernels.machine import roofline


def test_every_number_is_read_once():
    numbers = np.arange(4 * roofline.PIECE // 8, dtype=np.int64)
    sums = np.zeros(8, np.int64)
    total = 0
    for unit in range(4):  # one at a time: the sum of a call replaces the one before
        roofline.add_up(numbers.ctypes.data, 0, unit, unit + 1, sums.ctypes.data)
        total += int(sums[0])
    assert total == int(numbers.sum())


def test_the_reader_reads_again_and_again():
    read = roofline.reader(np.ones(8 * roofline.PIECE // 8, np.int64), 2)
    for _ in range(3):
        read()
