"""Fractions among the words of an operation, which are whole numbers: the bits of a float64."""
from __future__ import annotations

import struct
from typing import Any

from numba import types

from unspool.kernels.machine.jit import inner
from unspool.kernels.machine.simd import read_f64

f32 = types.float32


def word_of(fraction: float) -> int:
    """What to put into an int64 word."""
    return int(struct.unpack("<q", struct.pack("<d", fraction))[0])


@inner
def fraction(address: int) -> Any:
    """The f32 nearest to the fraction whose word lies at `address`."""
    return f32(read_f64(address))
