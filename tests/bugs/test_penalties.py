"""B15 scores of forced tokens, B17 and B18 what penalties count and do, B23 banned words."""
import numpy as np
import pytest
import torch
from bug_zoo import A, B, loaded, tl
from golden_zoo import shaped

GREEDY = {"temperature": 0, "max_new_tokens": 16, "ignore_eos": True}


@pytest.fixture
def lm(made):
    return loaded(made, tl())


# ── B15 ──────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("mode", [{"num_beams": 2}, {"temperature": 0},
                                  {"temperature": 1.0, "seed": 3}])
@pytest.mark.parametrize("size", [1, 3, 10])
def test_b15_the_first_token_is_forced_behind_any_prompt_and_certain(lm, size, mode):
    prompt = A[:size]
    out = lm.generate(prompt, forced_bos_token_id=7, max_new_tokens=5, **mode)
    first = out.tokens[0]
    assert out.token_ids[0] == 7 and first.processed_logprob == 0.0
    raw = lm.next(prompt)
    assert first.logprob == pytest.approx(raw.logprob(7), abs=1e-9) and first.logprob < 0
    if "num_beams" in mode:  # length_penalty 1: the score is the mean of its tokens'
        steps = [t.processed_logprob for t in out.tokens]
        assert out.score == pytest.approx(np.mean(steps), abs=1e-9)


@pytest.mark.parametrize("mode", [{"num_beams": 2}, {"temperature": 0}])
def test_b15_the_last_token_is_forced_at_the_limit(lm, mode):
    for limit in ({"max_new_tokens": 5}, {"max_length": len(B) + 5}):
        out = lm.generate(B, forced_eos_token_id=9, **limit, **mode)
        assert len(out.token_ids) == 5 and out.token_ids[-1] == 9
        assert out.tokens[-1].processed_logprob == 0.0


# ── B17 ──────────────────────────────────────────────────────────────────────────────────────────
RIGHT = [30, 20, 38, 34, 60, 33, 18, 25, 32, 21, 9, 63, 3, 5, 31, 55]


def test_b17_a_penalty_knows_no_padding(lm):
    given = {"repetition_penalty": 1.6, **GREEDY}
    assert lm.generate(B, **given).token_ids == RIGHT
    assert [o.token_ids for o in lm.generate([A, B], **given)][1] == RIGHT
    assert lm.generate([30, *B], **given).token_ids != RIGHT  # a token that is there counts


@pytest.mark.parametrize("given", [{"no_repeat_ngram_size": 2}, {"presence_penalty": 0.8},
                                   {"frequency_penalty": 0.8}, {"dry_multiplier": 0.8}])
def test_b17_nor_do_the_others(lm, given):
    alone = [lm.generate(prompt, **given, **GREEDY).token_ids for prompt in (A, B)]
    together = lm.generate([A, B], **given, **GREEDY)
    assert [o.token_ids for o in together] == alone
    assert lm.generate(B, **GREEDY).token_ids != alone[1]  # the case does discriminate


# ── B18 ──────────────────────────────────────────────────────────────────────────────────────────
WAYS = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def moved(given, row, prompt, written, dtype):
    """What the rules make of a row, up to what is added to all."""
    [got] = shaped({"do_sample": True, **given}, [row], [prompt], [written], dtype)
    return got - got[1]


@WAYS
def test_b18_a_penalty_makes_what_was_seen_less_likely_whatever_its_sign(dtype):
    got = moved({"repetition_penalty": 2.0}, [-2.0, 1.0, 3.0], [0], [2], dtype)
    np.testing.assert_allclose(got, np.array([-4, 1, 1.5]) - 1, atol=1e-6)


@WAYS
def test_b18_presence_and_frequency_count_what_was_written_and_no_prompt(dtype):
    got = moved({"frequency_penalty": 0.5, "presence_penalty": 0.25}, [0.0, 0.0, 0.0],
                [1, 1, 1, 0], [2, 2, 0], dtype)
    np.testing.assert_allclose(got, [-0.75, 0, -1.25], atol=1e-6)


# ── B23 ──────────────────────────────────────────────────────────────────────────────────────────
VOLCANO, SPACED = [7332, 4055, 95], [18051]
PUSH = {"temperature": 0, "max_new_tokens": 3}


def pushed(*sequences):
    """Biases that make greedy write these tokens one after the other."""
    return {tuple(ids[:i + 1]): 60.0 for ids in sequences for i in range(len(ids))}


def test_b23_no_spelling_of_a_banned_word_is_written(smol):
    for ids, prompt in ((SPACED, "A mountain with a crater is a"), (VOLCANO, "A mountain is a (")):
        free = smol.generate(prompt, logit_bias=pushed(ids), **PUSH)
        assert free.token_ids[:len(ids)] == ids and "volcano" in free.text
        held = smol.generate(prompt, logit_bias=pushed(ids), bad_words=["volcano"], **PUSH)
        assert "volcano" not in held.text
        assert held.token_ids[:len(ids) - 1] == ids[:-1]  # the tokens before the last stay allowed


def test_b23_a_word_that_begins_alike_is_no_banned_one(smol):
    held = smol.generate("(", logit_bias=pushed([7332, 4055, 504]), bad_words=["volcano"], **PUSH)
    assert held.token_ids == [7332, 4055, 504]


def test_b23_a_word_may_begin_in_the_prompt(smol):
    prompt = [*smol.facts.words("A mountain ("), *VOLCANO[:2]]
    bias = {95: 60.0}
    assert smol.generate(prompt, logit_bias=bias, **PUSH).token_ids[0] == 95
    assert smol.generate(prompt, logit_bias=bias, bad_words=["volcano"], **PUSH).token_ids[0] != 95


def test_b23_in_a_search_and_among_drawn_texts_too(smol):
    given = {"logit_bias": pushed(SPACED, VOLCANO), "bad_words": ["volcano"], "max_new_tokens": 4}
    for mode in ({"num_beams": 3, "n": 3}, {"temperature": 1.0, "seed": 1, "n": 4}):
        for choice in smol.generate("A mountain is a", **given, **mode):
            assert "volcano" not in choice.text


# ── and what the rows must come to ───────────────────────────────────────────────────────────────
def test_a_row_from_the_model_is_what_the_rules_are_applied_to(lm):
    """One penalty through the whole program against the formula on the model's own logits."""
    raw = lm.next(B)
    got = lm.next(B, repetition_penalty=1.6)
    want = torch.tensor(raw.logits)
    seen = torch.tensor(B)
    want[seen] = torch.where(want[seen] > 0, want[seen] / 1.6, want[seen] * 1.6)
    np.testing.assert_allclose(got.logprobs, want.log_softmax(-1).numpy(), atol=1e-9)
    assert got.prob(B[0]) < raw.prob(B[0])
