"""The cut that keeps tokens whose surprise is typical: a range in the middle of the list."""
from __future__ import annotations

from unspool.kernels.machine.jit import inner, kernel
from unspool.kernels.machine.lanes import lane, nearest
from unspool.kernels.machine.simd import f64x8, fill, read_f64
from unspool.kernels.reading.facts import exp_of
from unspool.kernels.shaping.cuts import EDGE
from unspool.kernels.shaping.row import (
    ALL,
    COUNT,
    ENTROPY,
    FIRST,
    MASS,
    MORE_BEYOND,
    SIGNATURE,
    UNKNOWN,
    number,
    set_word,
    value_at,
    word,
)

GRAIN = 1e-9  # nats: steps in which surprise is compared, so that rounding orders no equal ones


@inner
def surplus(row: int, i: int) -> float:
    """How much more surprise than the entropy a token has, in steps of GRAIN."""
    surprise = number(row, MASS) - value_at(row, i)
    return lane(nearest(fill(f64x8, (surprise - number(row, ENTROPY)) / GRAIN)), 0)


@inner
def open_ends(row: int, left: int, right: int) -> tuple[float, float]:
    """How far from the entropy the tokens next to a range are; infinity where there is none."""
    before = -surplus(row, left) if left >= 0 else float("inf")
    return before, surplus(row, right) if right < word(row, COUNT) else float("inf")


@kernel(SIGNATURE)
def typical_p(row: int, numbers: int, state: int) -> int:
    """mass, and 1 to keep all that are as typical as the last. `left` and `right`: the tokens next
    to the range that stays, which grows from the entropy on both sides."""
    mass, ties, count = read_f64(numbers), read_f64(numbers + 8) != 0.0, word(row, COUNT)
    if mass >= 1.0:
        return ALL
    right = 0
    while right < count and surplus(row, right) < 0.0:
        right += 1
    left, held, last = right - 1, 0.0, -1.0
    while right < count or word(row, MORE_BEYOND) == 0:
        before, behind = open_ends(row, left, right)
        full = held >= mass - EDGE and last >= 0.0
        done = full and (not ties or min(before, behind) > last)
        if done or min(before, behind) == float("inf"):
            set_word(row, FIRST, left + 1)
            return right
        last = min(before, behind)
        taken = left if before <= behind else right
        held += exp_of(value_at(row, taken) - number(row, MASS))
        left, right = left - (taken == left), right + (taken == right)
    return UNKNOWN
