"""What rules left, kind by kind: each answers for its rows as the list of what is left would."""
import numpy as np
import pytest

from unspool.engine.shaped import Best, Kept, Whole
from unspool.kernels.reading.logits import logits_of
from unspool.kernels.reading.noise import gumbel

ROWS = np.array([[0.5, 2.0, -1.0, 2.0], [1.0, -np.inf, 3.0, 0.0], [-np.inf, 1.0, 1.0, 1.0]])
PLACES = [(5, 0, 1, 0), (6, 1, 2, 0), (2**64 - 1, 0, 3, 6)]
TYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def groups(dtype):
    logits = logits_of(ROWS.astype(dtype))
    divisors = np.array([0.5, 3.0, 1e-300])
    kept = Kept(np.array([3, 1, 2, 0]), np.array([0.0, -1.0, 4.0, 2.0]), np.array([2, 1, 1]))
    return {"best": Best(logits, [0, 1, 2]), "whole": Whole(logits, [0, 1, 2]),
            "divided": Whole(logits, [0, 1, 2], divisors), "kept": kept}


@TYPES
@pytest.mark.parametrize("name", ["best", "whole", "divided", "kept"])
def test_all_answers_agree_with_what_is_left(name, dtype):
    group = groups(dtype)[name]
    picks = group.picks([0, 1, 2], PLACES)
    for i, (token, processed) in enumerate(picks):
        left = group.left(i)
        logs = dict(zip(left.ids.tolist(), (left.values - left.norm).tolist(), strict=True))
        noisy = left.values + gumbel(*PLACES[i], left.ids)
        assert token == left.ids[np.argmax(noisy)]
        assert processed is None or processed == pytest.approx(logs[token], abs=1e-12)
        for other in range(4):
            want = pytest.approx(logs.get(other, -np.inf), abs=1e-12)
            assert group.processed(i, other, float(ROWS[i, other])) == want
        order = sorted(logs, key=lambda t: (-logs[t], t))
        for count in (1, 2, 4):
            assert group.top(i, count) == order[:count]
        assert not group.empty(i)


@TYPES
@pytest.mark.parametrize("name", ["best", "whole", "divided", "kept"])
def test_some_rows_in_any_order_and_one_alone(name, dtype):
    group, logits = groups(dtype)[name], logits_of(ROWS.astype(dtype))
    every = group.picks([0, 1, 2], PLACES)
    assert groups(dtype)[name].picks([2, 0], [PLACES[2], PLACES[0]]) == [every[2], every[0]]
    for i in range(3):
        alone = group.alone(i, logits.alone(i))
        assert alone.picks([0], [PLACES[i]]) == [every[i]]
        assert alone.left(0).ids.tolist() == group.left(i).ids.tolist()
        assert alone.left(0).values.tolist() == group.left(i).values.tolist()


@TYPES
def test_rows_without_a_token_are_empty(dtype):
    logits = logits_of(np.full((1, 3), -np.inf, dtype))
    for group in (Best(logits, [0]), Whole(logits, [0]), Whole(logits, [0], np.array([0.5])),
                  Kept(np.empty(0, np.int64), np.empty(0), np.array([0]))):
        assert group.empty(0) and group.left(0).ids.tolist() == []
