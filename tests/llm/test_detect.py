"""A marked text is found by its key, as an output, as ids and as a string; others are not."""
import pytest

from unspool.core.errors import ParameterError, PromptError

MARKS = [{"kind": "kgw", "bias": 4.0}, {"kind": "gumbel"},
         {"kind": "synthid", "keys": [654, 400, 836, 123, 340, 443, 597, 160, 57]}]
PROMPT = "The history of the sea begins"


@pytest.fixture(scope="module")
def texts(smol):
    """A text with each mark, and one without."""
    return [smol.generate(PROMPT, max_new_tokens=100, temperature=1.2, seed=4, watermark=mark)
            for mark in (*MARKS, None)]


@pytest.mark.parametrize("which", range(len(MARKS)), ids=[mark["kind"] for mark in MARKS])
def test_a_mark_is_found_in_the_text_that_has_it(smol, texts, which):
    found = [smol.detect(text, MARKS[which], given=PROMPT) for text in texts]
    assert [f.marked for f in found] == [i == which for i in range(len(texts))]
    assert all(f.counted > 50 for f in found) and found[which].p_value < 1e-5


def test_an_output_its_choice_and_its_ids_are_the_same_text(smol, texts):
    out = texts[0]
    found = smol.detect(out, MARKS[0])
    assert found == smol.detect(out.first, MARKS[0]) == smol.detect(out.token_ids, MARKS[0])
    assert smol.detect(out.text, MARKS[0]).marked  # as the tokenizer reads it


def test_another_key_finds_nothing(smol, texts):
    assert not smol.detect(texts[0], {**MARKS[0], "hashing_key": 7}).marked


def test_too_short_a_text_is_not_marked(smol):
    found = smol.detect([5], {"kind": "gumbel"})
    assert found.counted == 0 and not found.marked
    assert found.json()["score"] is None


def test_what_is_wrong_is_named(smol, texts):
    with pytest.raises(ParameterError, match="kgb"):
        smol.detect(texts[0], {"kind": "kgb"})
    with pytest.raises(PromptError, match="outside the vocabulary"):
        smol.detect([10**6], MARKS[0])
