import json
import math

import models_zoo as zoo
import numpy as np
import pytest
import torch

from unspool.core.errors import PromptError, UnspoolError

HI = {"role": "user", "content": "ab"}


def teacher_forced(model, ids, start):
    """log P(ids[t] | ids[:t]) for t from `start` on, in one plain forward."""
    rows = torch.log_softmax(zoo.logits(model, ids), -1)
    return [rows[t - 1, ids[t]].item() for t in range(start, len(ids))]


def values(score):
    return [t.logprob for t in score.tokens if t.logprob is not None]


def test_a_score_is_the_teacher_forced_one(wide):
    """B36: nothing for the first token, then log_softmax(logits[t - 1])[id t]."""
    text = "The quick brown fox"
    ids = list(text.encode())
    score = wide.score(text)
    assert [t.id for t in score.tokens] == ids
    assert (score.tokens[0].logprob, score.tokens[0].rank) == (None, None)
    assert values(score) == pytest.approx(teacher_forced(wide.model, ids, 1), abs=1e-9)
    assert score.logprob == pytest.approx(sum(values(score)))
    assert score.scored == score.bytes == len(ids) - 1
    assert score.perplexity == pytest.approx(math.exp(-score.logprob / score.scored))
    assert score.bits_per_byte == pytest.approx(-score.logprob / math.log(2) / score.bytes)
    again = wide.score(ids)
    assert values(again) == pytest.approx(values(score), abs=1e-9)


def test_ranks(cy):
    score = cy.score("abd")
    assert [t.rank for t in score.tokens] == [None, 1, 4]  # of equal ones the lower id is first


@pytest.mark.parametrize("given", ["Hel", [72, 101, 108], np.array([72, 101, 108])])
def test_what_is_given_is_not_scored(wide, given):
    ids = list(b"Hello")
    score = wide.score("lo", given=given)
    assert [t.id for t in score.tokens] == ids[3:]
    assert values(score) == pytest.approx(teacher_forced(wide.model, ids, 3), abs=1e-9)
    assert score.scored == 2 == score.bytes


def test_given_and_text_make_the_whole(wide):
    whole, head = wide.score("Hello there"), wide.score("Hello")
    tail = wide.score(" there", given="Hello")
    assert whole.logprob == pytest.approx(head.logprob + tail.logprob, abs=1e-9)


def test_a_chat_may_be_given(make, kit):
    words = kit.letters(26, "<>/", chat_template=kit.chat)
    lm = make(zoo.markov(zoo.cycle(29)), words)
    score = lm.score("ab", given=[HI])
    assert score.output.usage.prompt == len("<user>ab</><assistant>")
    assert score.scored == 2
    with pytest.raises(PromptError, match="pass chat messages as `given`"):
        lm.score([HI])


def test_a_start_token_stands_before_the_text(make, kit):
    words = kit.letters(12, specials=["<s>"], start_ids=(12,))
    lm = make(zoo.markov(zoo.cycle(13)), words)
    for text in ("ab", "<s>ab"):
        score = lm.score(text)
        assert [t.id for t in score.tokens] == [0, 1]
        assert all(t.logprob is not None for t in score.tokens) and score.scored == 2
    assert [t.id for t in lm.score("ab", given="c").tokens] == [0, 1]
    assert lm.score("ab", given="c").output.usage.prompt == 2  # <s>c


def test_a_list_of_texts_in_its_order(wide):
    texts = ["Hello", "Hi", list(b"Ho"), "x" * 100]
    scores = wide.score(texts)
    assert [s.scored for s in scores] == [4, 1, 1, 99]
    for text, score in zip(texts, scores, strict=True):
        assert values(score) == pytest.approx(values(wide.score(text)), abs=1e-9)
    after = wide.score(["a", "b"], given="Hello")
    assert [s.scored for s in after] == [1, 1]
    assert after[0].logprob == pytest.approx(wide.score("a", given="Hello").logprob, abs=1e-9)


def test_a_text_as_long_as_the_context(make, kit):
    model = zoo.tiny(vocab_size=256, max_position_embeddings=150)
    lm = make(model, kit.byte_level())
    ids = zoo.rand_ids(4, 150, vocab=256)[0]
    score = lm.score(ids)
    assert score.scored == 149
    assert values(score) == pytest.approx(teacher_forced(model, ids, 1), abs=1e-9)
    assert lm.score(ids[1:], given=ids[:1]).scored == 149
    with pytest.raises(PromptError, match="the text has 151 tokens and the model's context 150"):
        lm.score([*ids, 5])
    with pytest.raises(PromptError, match="151"):
        lm.score(ids, given=[5])


def test_a_single_token_has_nothing_to_count(cy):
    score = cy.score("a")
    assert [(t.id, t.text, t.logprob, t.rank) for t in score.tokens] == [(0, "a", None, None)]
    assert (score.logprob, score.scored, score.bytes) == (0.0, 0, 0)
    assert math.isnan(score.perplexity) and math.isnan(score.bits_per_byte)
    assert score.to_json()["perplexity"] is None
    assert score.output.tokens == ()


def test_json(cy):
    found = json.loads(json.dumps(cy.score("abc").to_json(), allow_nan=False))
    assert list(found) == ["tokens", "logprob", "perplexity", "bits_per_byte"]
    assert [list(t) for t in found["tokens"]] == [["id", "text", "logprob", "rank"]] * 3
    assert found["tokens"][0] == {"id": 0, "text": "a", "logprob": None, "rank": None}


def test_an_impossible_text_scores_without_overflow(make, kit):
    table = zoo.cycle(12).double() * 1000
    score = make(zoo.markov(table), kit.letters()).score("ac")
    assert score.logprob < -7000 and score.perplexity == math.inf
    assert score.to_json()["perplexity"] is None


def test_end_tokens_and_the_models_defaults_end_no_score(make, kit):
    defaults = {"max_new_tokens": 2, "stop_strings": ["c"], "temperature": 0.1, "top_k": 1,
                "do_sample": True, "max_length": 3}  # fmt: skip
    lm = make(zoo.markov(zoo.cycle(12)), kit.letters(), ends={2, 3}, defaults=defaults)
    plain = make(zoo.markov(zoo.cycle(12)), kit.letters())
    score = lm.score("abcdefgh")
    assert score.scored == 7 and values(score) == values(plain.score("abcdefgh"))


@pytest.mark.parametrize(
    "bad", ["", [[]], None, 7, {"prompt": "a"}, b"a", [12], [-1], [1.5], [True]]
)
def test_what_cannot_be_scored(cy, bad):
    with pytest.raises(PromptError) as error:
        cy.score(bad)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("given", ["", [], [12], ["a", "b"]])
def test_what_cannot_be_given(cy, given):
    with pytest.raises(PromptError):
        cy.score("ab", given=given)


def test_a_bad_text_in_a_list_begins_nothing(cy):
    with pytest.raises(PromptError):
        cy.score(["ab", ""])
    assert cy.worker.thread is None


def test_a_failed_forward_is_raised(make, kit):
    model = zoo.markov(zoo.cycle(12))
    lm = make(model, kit.letters())
    model.score = None  # calling it fails
    with pytest.raises((TypeError, UnspoolError)):
        lm.score("abc")


def test_a_changed_token_changes_nothing_before_it(wide):
    """M5."""
    one, other = wide.score("Hello there"), wide.score("Hello_there")
    at = "Hello there".index(" ")
    assert values(one)[: at - 1] == pytest.approx(values(other)[: at - 1], abs=1e-9)
    assert values(one)[at:] != pytest.approx(values(other)[at:], abs=1e-3)


def test_the_default_model(smol):
    """B36: token byte strings join to the text's bytes, one entry a token, specials too."""
    text = "\n\n9 lives 🤷"
    score = smol.score(text)
    assert [t.id for t in score.tokens] == smol.tokenizer.encode(text)
    assert b"".join(t.bytes for t in score.output.tokens) == text.encode().removeprefix(b"\n\n")
    good = smol.score(" blue", given="The color of the sky is")
    bad = smol.score(" seventeen", given="The color of the sky is")
    assert good.perplexity < bad.perplexity
    with_special = smol.score("hi<|im_end|>")
    assert with_special.tokens[-1].id == 2 and with_special.tokens[-1].logprob is not None
