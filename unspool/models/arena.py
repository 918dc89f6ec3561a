"""Memory for packed weights, in slabs so large that the system backs them with huge pages.

A token reads every weight once, in order; with pages of 4 KiB a third of that time goes to looking
them up.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SLAB = 32 * 2**20  # bytes; NumPy asks for huge pages from 4 MiB on
LINE = 64  # bytes of a cache line


class Arena:
    """Hands out arrays of bytes, each at the start of a cache line, zeros where never written."""

    def __init__(self) -> None:
        self.slab = np.zeros(0, np.uint8)
        self.used = 0

    def take(self, shape: tuple[int, ...]) -> NDArray[np.uint8]:
        size = int(np.prod(shape))
        begin = self.used + -(self.slab.ctypes.data + self.used) % LINE
        if begin + size > len(self.slab):
            self.slab = np.zeros(max(SLAB, size + LINE), np.uint8)
            begin = -self.slab.ctypes.data % LINE
        self.used = begin + size
        return self.slab[begin : self.used].reshape(shape)
