"""The Mersenne Twister, and the permutations that torch's generator of the CPU draws from it.

MT19937 (Matsumoto and Nishimura 1998), seeded with 32 bits by `init_genrand`. torch takes the low
32 bits of `manual_seed`, and `randperm` of fewer than 2^32 / 20 numbers is the shuffle of Fisher
and Yates that swaps r[i] with r[i + random() % (size - i)], from i = 0 on.
It is here for marks that must be found by other programs. Our own noise is `philox`.
"""
from __future__ import annotations

import numpy as np
from numba import types
from numpy.typing import NDArray

from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.simd import read_i32, read_i64, write_i32, write_i64

i32 = types.int32
STATE = 624  # words of a generator
FAR = 397
BITS, HIGH, LOW = 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF


@inner
def seed_state(state: int, seed: int) -> None:
    x = seed & BITS
    write_i64(state, x)
    for i in range(1, STATE):
        x = (1812433253 * (x ^ (x >> 30)) + i) & BITS
        write_i64(state + 8 * i, x)


@inner
def twist(state: int) -> None:
    for i in range(STATE):
        following = read_i64(state + 8 * ((i + 1) % STATE))
        y = (read_i64(state + 8 * i) & HIGH) | (following & LOW)
        far = read_i64(state + 8 * ((i + FAR) % STATE))
        write_i64(state + 8 * i, far ^ (y >> 1) ^ (0x9908B0DF if y & 1 else 0))


@inner
def number_at(state: int, i: int) -> int:
    """The 32-bit number that is asked for as the i-th. All are, in order."""
    place = i % STATE
    if place == 0:
        twist(state)
    y = read_i64(state + 8 * place)
    y ^= y >> 11
    y ^= (y << 7) & 0x9D2C5680
    y ^= (y << 15) & 0xEFC60000
    return y ^ (y >> 18)


@inner
def comes_early(seed: int, size: int, count: int, token: int, state: int) -> bool:
    """Whether `token` is one of the first `count` of randperm(size). It follows one number through
    the shuffle, so it needs no room but that of the generator."""
    seed_state(state, seed)
    where = token
    for i in range(count):
        other = i + number_at(state, i) % (size - i) if i < size - 1 else i
        if other == where:
            return True
        if i == where:
            where = other
    return False


@kernel("void(int64, int64, int64, int64)")
def numbers_of(seed: int, count: int, state: int, out: int) -> None:
    """`count` numbers as int64. `state`: room for STATE words."""
    seed_state(state, seed)
    for i in range(count):
        write_i64(out + 8 * i, number_at(state, i))


@kernel("void(int64, int64, int64, int64, int64)")
def permute(seed: int, size: int, count: int, state: int, out: int) -> None:
    """The first `count` of randperm(size) at the beginning of `out`, int32 [size]."""
    seed_state(state, seed)
    for i in range(size):
        write_i32(out + 4 * i, i32(i))
    for i in range(min(count, size - 1)):
        here, there = out + 4 * i, out + 4 * (i + number_at(state, i) % (size - i))
        one, other = read_i32(here), read_i32(there)
        write_i32(here, other)
        write_i32(there, one)


def numbers(seed: int, count: int) -> NDArray[np.int64]:
    """The first 32-bit numbers of a seed, of which the low 32 bits count."""
    state, out = np.empty(STATE, np.int64), np.empty(count, np.int64)
    numbers_of(seed & BITS, count, state.ctypes.data, out.ctypes.data)
    return out


def randperm(seed: int, size: int, count: int | None = None) -> NDArray[np.int32]:
    """The first `count` (None: all) of torch.randperm(size) behind manual_seed(seed)."""
    count = size if count is None else count
    state, out = np.empty(STATE, np.int64), np.empty(size, np.int32)
    permute(seed & BITS, size, count, state.ctypes.data, out.ctypes.data)
    return out[:count]
