"""B24 the set of end tokens, B25 a neighbour and the seed, B26 n completions that are the same."""
import json

import pytest
import torch
from bug_zoo import A, B, asked, loaded, run, text, texts, tl
from models_zoo import hf_markov, save
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models

import unspool
from unspool.rules import greedy, temperature
from unspool.strategies import Beam, Sample

RING = [0, 1, 2, 3, 5, 6, 7, 8, 10, 11]


# ── B24 ──────────────────────────────────────────────────────────────────────────────────────────
def ring(four=5.0, nine=4.0):
    """From every token: 4 has this logit, 9 that, and the next of the ring 3."""
    table = torch.full((12, 12), -4.0)
    table[:, 4], table[:, 9] = four, nine
    for i in range(12):
        after = RING[(RING.index(i) + 1) % 10] if i in RING else 0
        table[i, after] = 3.0
    return table


@pytest.fixture
def model(tmp_path, made):
    """End token 4 stands only in the tokenizer's config, 9 only in the generation config."""
    def write(**logits):
        place = save(hf_markov(ring(**logits)), tmp_path)
        backend = Backend(models.BPE(vocab={chr(97 + i): i for i in range(12)}, merges=[]))
        backend.decoder = decoders.Fuse()
        backend.save(str(place / "tokenizer.json"))
        (place / "generation_config.json").write_text(json.dumps({"eos_token_id": 9}))
        (place / "tokenizer_config.json").write_text(json.dumps({"eos_token": "e"}))
        made.append(unspool.load(place))
        return made[-1]

    return write


PROMPT = [(i * 5) % 4 for i in range(49)] + [1]


def test_b24_the_ends_of_all_files_count(model):
    lm = model()
    out = lm.generate(PROMPT, max_new_tokens=20)
    assert (out.token_ids, out.finish_reason, out.stop_reason) == ([4], "stop", 4)


def test_b24_without_the_first_the_second_ends(model):
    out = model(four=-100.0).generate(PROMPT, max_new_tokens=20)
    assert (out.token_ids, out.finish_reason, out.stop_reason) == ([9], "stop", 9)


def test_b24_the_user_s_stops_are_added_and_do_not_replace(model):
    lm = model(four=-100.0, nine=-100.0)
    out = lm.generate(PROMPT, max_new_tokens=20, stop_token_ids=[7])
    assert (out.token_ids, out.finish_reason, out.stop_reason) == ([2, 3, 5, 6, 7], "stop", 7)
    assert lm.generate(PROMPT, max_new_tokens=3, stop_token_ids=[7]).finish_reason == "length"


def test_b24_beside_the_user_s_stop_the_model_s_ends_still_end(model):
    out = model().generate(PROMPT, max_new_tokens=20, stop_token_ids=[7])
    assert (out.token_ids, out.stop_reason) == ([4], 4)


def test_b24_ignored_ends_are_written_to_the_limit(model):
    out = model().generate(PROMPT, max_new_tokens=20, ignore_eos=True)
    assert (out.token_ids, out.finish_reason) == ([4] * 20, "length")


def test_b24_before_the_least_length_no_end_token_is_written(model):
    lm = model()
    out = lm.generate(PROMPT, min_new_tokens=5, max_new_tokens=20)
    assert (out.token_ids, out.finish_reason, out.stop_reason) == ([2, 3, 5, 6, 7, 4], "stop", 4)
    assert lm.generate(PROMPT, min_length=len(PROMPT) + 5, max_new_tokens=20).token_ids == \
        out.token_ids
    assert lm.generate(PROMPT, min_length=len(PROMPT), max_new_tokens=20).token_ids == [4]


def test_b24_biases_on_the_ends(model):
    lm = model()
    out = lm.generate(PROMPT, logit_bias={4: -100}, max_new_tokens=20)
    assert (out.token_ids, out.finish_reason) == ([9], "stop")
    out = lm.generate(PROMPT, logit_bias={4: -100, "9": -100}, stop_token_ids=[7],
                      max_new_tokens=20)
    assert (out.token_ids, out.finish_reason, out.stop_reason) == ([2, 3, 5, 6, 7], "stop", 7)


def test_b24_a_stop_token_waits_for_the_least_length_too(model):
    out = model().generate(PROMPT, min_new_tokens=3, stop_token_ids=[2], max_new_tokens=20)
    assert out.token_ids == [0, 1, 0, 4]  # 1 is followed by the lowest of what is left


# ── B25 ──────────────────────────────────────────────────────────────────────────────────────────
WARM = (temperature(0.8),)
ONE = asked(B, 16, rules=WARM, seed=42)
MODEL = tl()
NEIGHBOURS = {
    "unseeded": asked(A, 16, rules=WARM, seed=0x9E3779B97F4A7C15),
    "another seed": asked(B, 16, rules=WARM, seed=7),
    "the same seed": asked(B, 16, rules=WARM, seed=42),
    "ends early": asked(A, 3, rules=WARM, seed=1),
    "greedy": asked(A, 16, rules=(greedy(),)),
    "beams": asked(A, 16, Beam(3)),
    "many": asked(A, 16, Sample(5), WARM, seed=42),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
@pytest.mark.parametrize("place", ["before", "behind", "joins later"])
def test_b25_a_seed_gives_its_text_beside_any_neighbour(name, place):
    want, other = text(MODEL, ONE), NEIGHBOURS[name]
    torch.manual_seed(hash(name) % 1000)  # the state of other generators does not matter
    if place == "joins later":
        [job, _] = run(MODEL, ONE, joins=[other])
    else:
        jobs = run(MODEL, *([other, ONE] if place == "before" else [ONE, other]))
        job = jobs[1 if place == "before" else 0]
    assert texts(job) == [want] and len(want) == 16


def test_b25_a_request_that_joins_later_gets_the_same_text():
    [_, job] = run(MODEL, NEIGHBOURS["unseeded"], joins=[ONE])
    assert texts(job) == [text(MODEL, ONE)]


def test_b25_different_seeds_differ():
    seen = {tuple(text(MODEL, asked(B, 16, rules=WARM, seed=s))) for s in range(20)}
    assert len(seen) == 20


# ── B26 ──────────────────────────────────────────────────────────────────────────────────────────
@pytest.fixture
def lm(made):
    return loaded(made, tl())


HOT = {"temperature": 1.5, "max_new_tokens": 12}


def test_b26_n_texts_of_one_seed_differ_and_come_again(lm):
    eight = [c.token_ids for c in lm.generate(B, n=8, seed=7, **HOT)]
    assert len(set(map(tuple, eight))) == 8 and {len(t) for t in eight} == {12}
    assert [c.token_ids for c in lm.generate(B, n=8, seed=7, **HOT)] == eight
    assert [c.token_ids for c in lm.generate(B, n=4, seed=7, **HOT)] == eight[:4]
    assert lm.generate(B, seed=7, **HOT).token_ids == eight[0]


def test_b26_unseeded_calls_differ_and_report_a_seed_that_repeats_them(lm):
    outs = [lm.generate(B, **HOT) for _ in range(3)]
    assert len({tuple(out.token_ids) for out in outs}) == 3
    assert len({out.seed for out in outs}) == 3
    for out in outs:
        assert lm.generate(B, seed=out.seed, **HOT).token_ids == out.token_ids


def test_b26_greedy_gives_n_equal_texts_and_a_note(lm):
    out = lm.generate(B, n=3, temperature=0, max_new_tokens=12)
    assert len({tuple(c.token_ids) for c in out}) == 1 and len(out) == 3
    assert any("greedy" in note for note in out.notes)
