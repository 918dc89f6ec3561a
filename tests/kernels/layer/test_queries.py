"""Each row's segments are attended to once, in order, whole or in parts."""
import numpy as np
import pytest

from unspool.kernels.layer.attention import SEGMENT
from unspool.kernels.layer.queries import attended, most_slots


def covered(work):
    """Row -> its segments in the order in which they are added up."""
    slots = {slot: (row, first, last) for row, first, last, slot in work.queries.tolist()
             if slot >= 0}
    found = {row: list(range(first, last + 1)) for row, first, last, slot in work.queries.tolist()
             if slot < 0}
    for row, first, count in work.merges.tolist():
        assert row not in found
        parts = [slots.pop(slot) for slot in range(first, first + count)]
        assert all(part[0] == row and part[1] == part[2] for part in parts)
        found[row] = [part[1] for part in parts]
    assert not slots, "nobody reads these slots"
    return found


@pytest.mark.parametrize("threads", [1, 2, 16, 1000])
@pytest.mark.parametrize("kv_heads", [1, 3, 8])
@pytest.mark.parametrize("positions", [
    [0], [255], [256], [257, 3], [2047], [5, 5000, 255, 256], list(range(600)), [9000] * 40,
])
def test_every_segment_once_in_order(positions, kv_heads, threads):
    work = attended(np.array(positions), kv_heads, threads)
    want = {row: list(range(p // SEGMENT + 1)) for row, p in enumerate(positions)}
    assert covered(work) == want
    assert work.slots == sum(work.merges[:, 2]) <= most_slots(kv_heads, threads, max(positions) + 1)


def test_few_rows_over_long_texts_are_shared_out():
    assert len(attended(np.array([2047]), 3, 2).queries) == 8
    assert len(attended(np.array([2047]), 8, 2).queries) == 1
    assert len(attended(np.array([2047] * 3), 3, 2).queries) == 3
    assert len(attended(np.array([100]), 3, 64).queries) == 1
