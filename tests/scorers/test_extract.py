import pytest
from hypothesis import given
from hypothesis import strategies as st
from scorers_zoo import branch, piece, saying

from unspool.core.branch import Ended
from unspool.core.errors import ParameterError
from unspool.scorers import EXTRACTORS
from unspool.scorers.match import PATTERN_CHARS


def answer(name, text, **options):
    """The answer, and the bytes of the text at its span."""
    made, branches = EXTRACTORS[name](piece, **options), saying(text)
    (found,), (span,) = made.answers(branches), made.spans(branches)
    return found, None if span is None else text.encode()[slice(*span)].decode()


NUMBERS = {
    "So 3 and 4 make 7.": "7",
    "It is 1,000.50 €": "1,000.50",
    "from 5-3 we get": "3",
    "it is -3": "-3",
    "it is \u22123 °C": "\u22123",
    "f(2)-1": "1",
    "half is .5!": ".5",
    "version 1.2.3": "3",
    "1, 2,3": "3",
    "it weighs 2e3 kg": "2e3",
    "3em wide": "3",
    "🦊 42 🦋": "42",
    "**12**": "12",
}


@pytest.mark.parametrize("text", NUMBERS)
def test_the_last_number(text):
    assert answer("number", text)[1] == NUMBERS[text]


BOXES = {
    r"first \boxed{1}, then \boxed{2}": "2",
    r"\boxed{\frac{1}{2}}": r"\frac{1}{2}",
    r"\boxed{\boxed{3}}": "3",
    r"{a \boxed{ x + 1 } b}": "x + 1",
    r"\boxed{4} and \boxed{cut o": "4",
    r"} \boxed {5}": "5",
    r"\boxed{\{1, 2\}}": r"\{1, 2\}",
    r"é\\boxed{é}": "é",
}


@pytest.mark.parametrize("text", BOXES)
def test_the_last_box_that_is_closed(text):
    assert answer("boxed", text) == (BOXES[text].casefold(), BOXES[text])


PATTERNS = [
    ("answer is (\\w+)", 1, "The answer is A. No: the answer is B.", "B"),
    ("(?i)ANSWER: (?P<what>.*)", "what", "Answer:  Blue   Sky ", "Blue   Sky"),
    ("[a-z]*", 0, "one TWO", "one"),  # where it matches nothing it is passed over
    ("(a)|(b)", 1, "a b", "a"),
    ("\\d+", 0, "ééé 7", "7"),
]


@pytest.mark.parametrize(("regex", "group", "text", "found"), PATTERNS)
def test_the_last_match_of_a_pattern(regex, group, text, found):
    folded = " ".join(found.split()).casefold()
    assert answer("pattern", text, regex=regex, group=group) == (folded, found)


@pytest.mark.parametrize(("name", "options"), [("number", {}), ("boxed", {}),
                                               ("pattern", {"regex": "z(.*)", "group": 1})])
@pytest.mark.parametrize("text", ["", "nothing here", "\\boxed{ }", "z ", "{z"])
def test_no_answer(name, options, text):
    assert answer(name, text, **options) == (None, None)


def test_equal_numbers_are_one_answer():
    made = EXTRACTORS["pattern"](piece, regex="= (.*)", group=1)
    assert set(made.answers(saying("= 1,000", "= 1000.0", "so = 1000."))) == {"1000"}


@given(st.lists(st.text("1 2,.-é{}\\boxed", max_size=20), max_size=4))
def test_a_batch_is_each_alone(texts):
    for name in ("number", "boxed"):
        made = EXTRACTORS[name](piece)
        alone = [made.answers([one])[0] for one in saying(*texts)]
        assert made.answers(saying(*texts)) == alone
        assert [span is None for span in made.spans(saying(*texts))] == [a is None for a in alone]


def test_spans_count_bytes_that_are_no_text_too():
    """A token of the answer is found by the bytes before it, whatever these are."""
    one = branch(b"\xff\xc3 \xf0\x9f 12")
    assert EXTRACTORS["number"](piece).spans([one]) == [(6, 8)]


def test_what_a_stop_cuts_off_is_no_answer():
    one = branch(b"1 2 3", ended=Ended("stop", "3", 1))
    assert EXTRACTORS["number"](piece).answers([one]) == ["2"]


def test_long_texts_of_open_boxes_and_digits():
    """Each character is read once: these would not end if it were not so."""
    braces, digits = "\\boxed{" * 50_000 + "1}", "1" + ",234" * 50_000
    assert EXTRACTORS["boxed"](piece).answers(saying(braces)) == ["1"]
    assert EXTRACTORS["number"](piece).answers(saying(digits)) == [digits.replace(",", "")]


BAD = {
    "open": (("(", 0), "no regular expression"),
    "deep": (("(" * 2000 + ")" * 2000, 0), "no regular expression"),
    "empty": (("", 0), "string of 1 to"),
    "long": (("a" * (PATTERN_CHARS + 1), 0), "string of 1 to"),
    "bytes": ((b"a", 0), "string of 1 to"),
    "group": (("(a)", 2), "has no group 2; name one of \\[0, 1\\]"),
    "name": (("(?P<x>a)", "y"), "has no group 'y'"),
    "truth": (("(a)", True), "has no group True"),
    "list": (("(a)", [1]), "has no group"),
}


@pytest.mark.parametrize(("given", "why"), BAD.values(), ids=BAD)
def test_what_is_no_pattern_is_refused_by_name(given, why):
    with pytest.raises(ParameterError, match=why) as caught:
        EXTRACTORS["pattern"](piece, *given)
    assert caught.value.name == "answer"


def test_they_are_values():
    one = EXTRACTORS["pattern"](piece, "a", 0)
    assert one == EXTRACTORS["pattern"](piece, "a") and hash(one) == hash(one)
    assert repr(one) == "Pattern(regex='a', group=0)"
    assert repr(EXTRACTORS["number"](piece)) == "Number()"
