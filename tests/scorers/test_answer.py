import pytest
from hypothesis import given
from hypothesis import strategies as st

from unspool.scorers.answer import folded, plain

SAME = {
    "1000": ["1,000", "1000", "1000.0", "1000.", "01000", "+1000", "1e3", "1E+3", " 1000 ",
             "1,000.00", "10e2"],
    "-0.5": ["-.5", "-0.50", "\u22120.5", "-5e-1"],
    "0": ["0", "-0", "0.000", "00", "-.0", "0e5"],
    "1234567": ["1,234,567", "1234567.0"],
    "big ben": ["Big  Ben", "BIG\nben ", "big\u00a0ben"],
    "strasse": ["Straße", "STRASSE"],
}


@pytest.mark.parametrize("form", SAME)
def test_one_answer_in_many_forms(form):
    assert {folded(answer) for answer in SAME[form]} == {form}


@pytest.mark.parametrize("answer", ["1,2", "3,1415", "1,00", "1.2.3", "50%", "$5", "1/2", "5 m",
                                    "(5)", "e5", "."])
def test_what_is_no_number_is_left_as_it_is(answer):
    assert folded(answer) == answer


@given(st.text(max_size=20))
def test_a_form_is_its_own(answer):
    assert folded(folded(answer)) == folded(answer)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-10**9,
                   max_value=10**9))
def test_numbers_are_told_apart_and_keep_every_digit(number):
    assert float(folded(f"{number:f}")) == float(number)
    assert folded(f"{number:,f}") == folded(f"{number:f}")
    assert folded(str(abs(number) + 1)) != folded(str(abs(number)))


def test_numbers_are_exact_whatever_their_size():
    digits = "123456789" * 100
    assert plain(f"{digits}.0") == digits
    assert plain("1e999") == "1" + "0" * 999
