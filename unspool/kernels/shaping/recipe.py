"""Recipes as the kernel reads them: a table of operations with their numbers. See `shape`."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unspool.kernels.machine.jit import Kernel
from unspool.kernels.shaping.row import STATE
from unspool.kernels.shaping.shape import NUMBERS, STRIDE

Words = NDArray[np.int64]
Number = float | int  # a whole number is written as one, an address for instance
MOST_NUMBERS = STRIDE - NUMBERS


@dataclass(frozen=True, slots=True)
class Operation:
    """A kernel with the signature of `row`, its kind, and what it needs to know of the row."""

    kernel: Kernel
    kind: int
    needs: int = 0


def write(words: Words, numbers: Sequence[Number]) -> None:
    """Numbers as words: whole ones as int64, others as the bits of a float64."""
    for i, number in enumerate(numbers):
        if isinstance(number, int):
            words[i] = number
        else:
            words[i:i + 1].view(np.float64)[0] = number


def table_of(steps: Sequence[tuple[Operation, Sequence[Number]]]) -> Words:
    """The table of a recipe. Its kernels are compiled here, if they never were."""
    table = np.zeros(1 + STRIDE * len(steps), np.int64)
    table[0] = len(steps)
    for i, (operation, numbers) in enumerate(steps):
        own = table[1 + STRIDE * i:1 + STRIDE * (i + 1)]
        own[:NUMBERS] = operation.kernel.address, operation.kind, operation.needs
        write(own[NUMBERS:], numbers)
    return table


def states_of(words: Sequence[Sequence[Number]]) -> Words:
    """What the rules of one row remember, STATE words for each."""
    table = np.zeros((len(words), STATE), np.int64)
    for own, numbers in zip(table, words, strict=True):
        write(own, numbers)
    return table
