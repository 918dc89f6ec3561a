"""Figures and their bounds."""

import pytest

from bench.figure import Figure, at_least, at_most, exactly, number, seen

NAN = float("nan")


@pytest.mark.parametrize(("figure", "ok"), [
    (at_most("a", 1.0, 1.0), True), (at_most("a", 1.01, 1.0), False),
    (at_least("a", 1.0, 1.0), True), (at_least("a", 0.99, 1.0), False),
    (exactly("a", 3, 3), True), (exactly("a", 4, 3), False), (exactly("a", 2, 3), False),
    (at_most("a", NAN, 1.0), False), (at_least("a", NAN, 1.0), False),
    (exactly("a", NAN, 1), False), (at_most("a", 0, 0), True), (seen("a", NAN), True),
])
def test_a_bound_is_kept_or_not(figure, ok):
    assert figure.ok is ok
    assert ("FAIL" in figure.line()) is not ok


def test_a_line_names_all_of_a_figure():
    line = at_most("load()", 1.23456, 2, "s", "median of 5").line()
    assert line.split() == ["load()", "1.235", "s", "<=", "2", "ok", "median", "of", "5"]
    assert seen("speed", 12.0, "tok/s").line().split() == ["speed", "12", "tok/s", "-"]


def test_counts_are_written_in_full():
    assert number(123_456) == "123456" and number(0.000123456) == "0.0001235"


def test_json_says_whether_it_is_kept():
    found = Figure("a", 2.0, "<=", 1.0, "s").json("load")
    assert found == {"section": "load", "what": "a", "measured": 2.0, "sign": "<=", "bound": 1.0,
                     "unit": "s", "note": "", "ok": False}
