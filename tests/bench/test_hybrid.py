"""What the study of hybrids counts, and what it draws."""
from xml.etree import ElementTree

import pytest

from bench.hybrid import MEASURES, NEW, WAYS, Text, distinct, drawn, repeated, spread, table
from bench.scatter import Axis, Group, scatter


def test_repeated_n_grams_by_hand():
    assert repeated([1, 2, 3, 4]) == 0
    assert repeated([7] * 8) == pytest.approx(4 / 5)  # five 4-grams, four of them seen before
    assert repeated([1, 2, 1, 2, 1, 2], 2) == pytest.approx(3 / 5)
    assert distinct([1, 2, 1, 3], 1) == pytest.approx(3 / 4)
    with pytest.raises(ValueError, match="2 tokens"):
        distinct([1, 2], 3)


def texts():
    """Three ways with two texts each."""
    def of(step, lost):
        return Text([i % step for i in range(NEW)], [-lost] * 20 + [-2 * lost] * (NEW - 20))

    return {name: [of(5 + i, 0.5), of(100, 1.0)] for i, name in enumerate(WAYS)}


def test_the_table_has_every_measure_and_way():
    lines = table(texts()).splitlines()
    assert len(lines) == 2 + len(MEASURES)
    assert all(f"`{way}`" in lines[0] for way in WAYS.values())
    assert "**-0.75** (-0.88 to -0.62)" in lines[-2] and "first 20" in lines[-2]
    assert spread([1.0, 2.0, 3.0]) == (1.5, 2.0, 2.5)


def test_each_text_is_a_point_of_the_chart():
    made = ElementTree.fromstring(drawn(texts()))
    name = "{http://www.w3.org/2000/svg}"
    marks = [mark.get("r") for mark in made.findall(f"{name}circle")]
    assert marks.count("4") == 6 and marks.count("9") == 3
    words = [text.text for text in made.iter(f"{name}text")]
    assert "repeated 4-grams, share" in words and any(">>" in word for word in words)


@pytest.mark.parametrize("values", [[0.0, 1.0], [-3.1, -0.2], [5.0], [0.02, 0.93], [10.0, 2000.0]])
def test_an_axis_holds_its_values_between_round_ticks(values):
    axis = Axis(values, 0, 100)
    assert axis.low <= min(values) <= max(values) <= axis.high
    assert 2 <= len(axis.ticks) <= 13
    assert axis.at(axis.low) == 0 and axis.at(axis.high) == 100


def test_points_lie_where_their_numbers_are():
    made = scatter([Group("a < b", [0.0, 1.0], [0.0, 1.0])], "x", "y")
    assert "a &lt; b" in made
    first, second = [line for line in made.splitlines() if 'r="4"' in line]
    assert first != second
