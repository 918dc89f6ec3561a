"""Points and their figures, and what the engines read."""

import pytest

from unspool.bench.points import batch, decode, prefill
from unspool.bench.prompts import Prompts
from unspool.core.errors import ModelError

ANSWER = {"first_s": 2.0, "rest_s": 4.0, "after": 20}


def test_a_rate_is_of_writing_or_of_reading():
    assert decode(21).first.rate(ANSWER) == 5.0
    assert prefill(512).first.rate(ANSWER) == 256.0
    assert batch(11, (2, 4)).first.rate(ANSWER) == 5.0


def test_decode_has_its_lengths_and_warms_with_its_whole_text():
    found = decode(128, (128, 2048))
    assert [point.label for point in found.points] == ["decode", "at 128", "at 2048"]
    assert (found.main, found.warm, found.context, found.rows) == ("decode", 128, 2081, 1)


@pytest.mark.parametrize(("sizes", "main"), [((1, 16, 32), "16"), ((1, 2, 4), "4"), ((8, 2), "8")])
def test_a_batch_is_compared_at_sixteen_or_at_the_most(sizes, main):
    found = batch(64, sizes)
    assert found.main == main and found.rows == max(sizes)


class Letters:
    def encode(self, text, *, start):
        assert not start
        return list(range(700))


def test_no_two_rows_and_no_two_rounds_begin_alike():
    prompts = Prompts(Letters())
    begun = [row[0] for turn in range(8) for row in prompts.rows(4, 32, turn)]
    assert len(set(begun)) == len(begun)
    assert [len(row) for row in prompts.rows(3, 2048, 1)] == [2048] * 3
    assert prompts.rows(2, 32, 5) == prompts.rows(2, 32, 5)


def test_sixteen_rows_differ_on_the_default_model(smol):
    prompts = Prompts(smol.tokenizer)
    for turn in range(3):
        rows = prompts.rows(32, 32, turn)
        assert len({tuple(row) for row in rows}) == 32


def test_a_model_without_a_tokenizer_cannot_be_measured():
    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        Prompts(None)
