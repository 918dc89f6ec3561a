"""The engine's end: what is timed, and what goes over the wire."""

import runpy

import pytest

from unspool.bench.engines import WORKERS

wire = runpy.run_path(str(WORKERS / "wire.py"))


@pytest.fixture
def clock(monkeypatch):
    """`clock(rows)`, whose time is what the test last set in `now`."""
    now = [10.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    return lambda rows: (wire["Clock"](rows), now)


def test_decoding_begins_when_every_row_has_its_first_token(clock):
    it, now = clock(2)
    for moment, row, tokens in ((11, 0, 1), (12, 0, 1), (13, 1, 1), (14, 0, 2), (16, 1, 1)):
        now[0] = moment
        it.wrote(row, tokens)
    answer = it.answer([[1, 2, 3, 4], [5, 6]])
    assert (answer["first_s"], answer["rest_s"], answer["after"]) == (3.0, 3.0, 3)


def test_a_step_is_a_token_of_every_row(clock):
    it, now = clock(3)
    for moment in (11, 12, 13):
        now[0] = moment
        it.step()
    answer = it.answer([[1, 1, 1]] * 3)
    assert (answer["first_s"], answer["rest_s"], answer["after"]) == (1.0, 2.0, 6)


def test_a_text_without_tokens_tells_nothing(clock):
    it, now = clock(1)
    now[0] = 12.0
    it.wrote(0, 0)
    assert it.first is None and it.last == 10.0


@pytest.mark.parametrize("ids", [[[1]], [[1, 2, 3]], [[1, 2], []]])
def test_tokens_that_were_not_told_are_an_error(clock, ids):
    it, _ = clock(1)
    it.step()
    it.step()
    with pytest.raises(RuntimeError, match="told were"):
        it.answer(ids)
