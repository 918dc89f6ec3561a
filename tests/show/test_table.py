import pytest

from unspool.show.table import cells, columns, percent


def test_columns_line_up():
    rows = [("name", "count", "share"), ("a", "7", "50 %"), ("long", "1234567", "")]
    assert columns(rows) == ["name    count  share", "a           7   50 %", "long  1234567"]
    assert columns(rows, left=2)[1] == "a     7         50 %"


def test_columns_with_nothing_in_them_are_left_out():
    assert columns([("a", "b", "c"), ("1", "", "3")]) == ["a  c", "1  3"]
    assert columns([("a", "b")]) == [""]


@pytest.mark.parametrize(("text", "count"), [("abc", 3), ("\u4e2d", 2), ("e\u0301", 1), ("", 0)])
def test_cells_are_those_of_a_terminal(text, count):
    assert cells(text) == count
    [head, line] = columns([("x" * 8, "y"), (text, "1")])
    assert cells(head) == cells(line)


@pytest.mark.parametrize(("share", "text"), [
    (0.3124, "31.2 %"), (1.0, "100 %"), (0.000214, "0.0214 %"), (0.0, ""), (1e-17, ""),
])  # fmt: skip
def test_percent(share, text):
    assert percent(share) == text
