"""`choice=`: the text is one of these, whatever the strategy; the answer says why it ended."""
import json
import math

import models_zoo as zoo
import numpy as np
import pytest
from models_zoo import span

from unspool.constraints import choice
from unspool.core.errors import ParameterError, RowError
from unspool.core.params import spelled

SKY = "The color of the sky is"
TEXTS = [" blue", " green", " bluish green", "🦊!"]
WAYS = {"greedy": {}, "sample": {"do_sample": True, "temperature": 1.5, "seed": 4},
        "beams": {"num_beams": 3}, "cut": {"top_p": 0.5, "seed": 1}}


# ── real words ───────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_the_text_is_one_of_the_choices(smol, how):
    out = smol.generate(SKY, choice=TEXTS, **how)
    assert out.text in TEXTS
    assert (out.finish_reason, out.stop_reason) == ("stop", "choice")
    assert b"".join(t.bytes for t in out.tokens).decode() == out.text


def test_many_samples(smol):
    out = smol.generate(SKY, choice=TEXTS, n=16, do_sample=True, temperature=2.0, seed=2)
    assert {one.text for one in out} <= set(TEXTS) and len({one.text for one in out}) > 1


def test_a_choice_within_another_ends_by_an_end_token_that_is_not_shown(smol):
    out = smol.generate(SKY, choice=[" blue", " blue!"], n=12, do_sample=True, seed=1,
                        temperature=3.0)
    assert {one.text for one in out} == {" blue", " blue!"}
    for one in out:
        ended = one.text == " blue"
        assert (one.token_ids[-1] in smol.facts.ends) == ended
        assert one.stop_reason == (one.token_ids[-1] if ended else "choice")


def test_each_step_is_renormalised_over_what_may_follow(smol):
    """Processed over raw probability is one over the raw mass of all that is allowed."""
    made = choice(TEXTS, smol.facts.vocabulary, smol.facts.ends)
    out = smol.generate(SKY, choice=TEXTS, do_sample=True, seed=3)
    state, ids = made.start(), smol.facts.words(SKY)
    for token in out.tokens:
        raw = smol.next(ids).probs[made.allowed(state)]
        assert token.processed_logprob == pytest.approx(token.logprob - math.log(raw.sum()),
                                                        abs=1e-4)
        state, ids = made.after(state, token.id), [*ids, token.id]
    assert made.done(state)


def test_it_shapes_the_next_distribution(smol):
    made = choice(TEXTS, smol.facts.vocabulary, smol.facts.ends)
    dist = smol.next(SKY, choice=TEXTS)
    assert np.flatnonzero(dist.probs).tolist() == made.allowed(made.start()).tolist()
    assert dist.probs.sum() == pytest.approx(1)


def test_half_a_fox_is_never_streamed(smol):
    shown = [e.text for e in smol.stream("An animal:", choice=["🦊🦊"]) if e.type == "commit"]
    assert "".join(shown) == "🦊🦊" and not any("\ufffd" in text for text in shown)


# ── the law, on a model that can be read to the end ──────────────────────────────────────────────
PROMPT, LAW = [1, 2], ["ab", "abc", "ca", "caa"]
END, STRAY = 5, 4


@pytest.fixture
def few(make, kit):
    """a, b, c, ab, and the special tokens <x> (4) and <end> (5)."""
    words = kit.letters(3, ["ab"], ["<x>", "<end>"])
    return make(zoo.tiny(vocab_size=6), words, ends={END})


def every(lm):
    """{ids: probability} of all that may be written, by exhaustion."""
    made, out = choice(LAW, lm.facts.vocabulary, lm.facts.ends), {}

    def walk(state, ids, p):
        if made.done(state):
            out[ids] = p
            return
        row = lm.model.score([span([*PROMPT, *ids])]).rows()[-1]
        allowed = made.allowed(state).tolist()
        share = np.exp(row[allowed])
        for token, part in zip(allowed, share / share.sum(), strict=True):
            walk(made.after(state, token), (*ids, token), p * part)

    walk(made.start(), (), 1.0)
    return out


def test_the_probability_of_a_text_is_that_of_all_its_spellings(few):
    """800 samples against exhaustion: chi-square, 5 degrees of freedom, p = 1e-4."""
    law = every(few)
    assert sum(law.values()) == pytest.approx(1) and len(law) == 6
    out = [one for seed in range(8)
           for one in few.generate(PROMPT, choice=LAW, n=100, do_sample=True, seed=seed)]
    for one in out:
        assert math.exp(one.score) == pytest.approx(law[tuple(one.token_ids)])
        assert one.text in LAW
    found = [tuple(one.token_ids) for one in out]
    want = {ids: p * len(out) for ids, p in law.items()}
    assert sum((found.count(ids) - n) ** 2 / n for ids, n in want.items()) < 25.7


def test_beams_find_the_likeliest(few):
    law = every(few)
    out = few.generate(PROMPT, choice=LAW, num_beams=6, n=6, length_penalty=0.0)
    assert [tuple(one.token_ids) for one in out] == sorted(law, key=lambda ids: -law[ids])


def test_a_beam_sees_past_the_tokens_that_end_a_choice(make):
    """Ten choices end at once, and each is likelier than the first token of the long one, which is
    the best per token."""
    table = np.zeros((12, 12))
    table[0, 10], table[10, 11] = -1.0, 9.0
    lm, texts = make(zoo.markov(table)), [*([i] for i in range(10)), [10, 11]]
    out = lm.generate([0], choice=texts, num_beams=2, length_penalty=5.0, early_stopping="never")
    assert out.token_ids == [10, 11]


# ── lists of ids ─────────────────────────────────────────────────────────────────────────────────
def test_lists_of_ids_are_written_as_they_are(make):
    """A model without a tokenizer; special tokens too may be chosen so."""
    lm = make(zoo.tiny(vocab_size=8), ends={7})
    texts = [[1, 2], [4, 4, 6]]
    out = lm.generate([3], choice=texts, n=20, do_sample=True, temperature=2.0, seed=0)
    assert sorted({tuple(one.token_ids) for one in out}) == sorted(map(tuple, texts))
    assert {one.stop_reason for one in out} == {"choice"}
    with pytest.raises(ParameterError, match="no tokens that spell it"):
        lm.generate([3], choice=["a"])


def test_special_tokens_spell_nothing(few):
    with pytest.raises(ParameterError, match="'<x>': this model has no tokens"):
        few.generate(PROMPT, choice=["<x>"])
    assert few.generate(PROMPT, choice=[[STRAY]], skip_special_tokens=False).text == "<x>"


# ── beside other parameters ──────────────────────────────────────────────────────────────────────
def test_a_limit_may_cut_a_choice(few):
    out = few.generate(PROMPT, choice=["abcabc"], max_new_tokens=2)
    assert out.finish_reason == "length" and "abcabc".startswith(out.text)


def test_a_longer_text_can_be_asked_for(few):
    """No end before four tokens: "ab" cannot end there, and "caa" ends by itself."""
    out = few.generate(PROMPT, choice=LAW, min_new_tokens=4, n=40, do_sample=True, seed=0)
    assert {one.text for one in out} == {"abc", "caa"}


def test_rules_that_leave_no_choice_are_named(few):
    with pytest.raises(RowError, match=r"(?s)constrain\(choice=\['ab'\]\).*removed every one"):
        few.generate(PROMPT, choice=["ab"], suppress_tokens=[0, 3])


def test_without_an_end_token_nothing_parts_two_choices(few):
    for how in ({"ignore_eos": True}, {"eos_token_id": []}):
        with pytest.raises(ParameterError, match="one begins with the other") as caught:
            few.generate(PROMPT, choice=LAW, **how)
        assert caught.value.name == "choice"
    out = few.generate(PROMPT, choice=LAW, ignore_eos=True, stop_token_ids=[STRAY], n=20,
                       do_sample=True)
    assert {one.text for one in out} <= set(LAW)
    assert {one.token_ids[-1] for one in out if one.stop_reason == STRAY} == {STRAY}


def test_an_answer_says_what_was_asked(few):
    out = few.generate(PROMPT, choice=LAW)
    assert json.loads(json.dumps(out.to_json()))["params"]["choice"] == LAW
    assert spelled({"guided_choice": LAW})["choice"][1] == LAW


@pytest.mark.parametrize("given", ["yes", [], [""], 3, [1], ["a", [1]], [[9]], ["xyz"]])
def test_what_cannot_be_chosen_is_refused_by_name(few, given):
    with pytest.raises(ParameterError) as caught:
        few.generate(PROMPT, choice=given)
    assert caught.value.name == "choice" and str(caught.value).startswith("choice")


@pytest.mark.parametrize(("stop", "text"), [("blue", " "), ("lu", " b"), (" ", ""), ("x", " blue")])
def test_a_stop_string_is_cut_off_a_choice_too(smol, stop, text):
    """Also where one token completes both."""
    out = smol.generate(SKY, choice=[" blue"], stop=[stop])
    assert (out.text, out.stop_reason) == (text, "choice" if stop == "x" else stop)


@pytest.mark.parametrize("name", ["min_new_tokens", "min_length"])
def test_a_complete_choice_is_not_made_longer_and_a_note_says_so(smol, name):
    out = smol.generate(SKY, choice=[" blue"], **{name: 100})
    [note] = out.notes
    assert out.text == " blue" and note.startswith(f"{name}=100: a choice that is complete")
