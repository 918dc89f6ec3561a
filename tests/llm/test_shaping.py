"""From parameters to rules: order, modes, what is refused and what is noted."""
import json
import re

import models_zoo as zoo
import numpy as np
import pytest

from unspool.core.errors import ParameterError, PromptError
from unspool.llm.facts import Facts
from unspool.llm.resolve import resolve
from unspool.rules import KINDS, rule
from unspool.rules.dialects import DIALECTS
from unspool.strategies import Beam, Sample

PROMPT = [1, 2, 3]


@pytest.fixture
def ask(kit):
    def resolved(defaults=None, ends=(0,), words=True, **given):
        tokens = kit.letters(12, (" ", "\n")) if words else None
        facts = Facts("tiny", "reference", 14, 200, tokens, frozenset(ends), defaults or {})
        return resolve(facts, PROMPT, given)

    return resolved


def rules(resolved):
    return [str(rule) for rule in resolved.request.rules]


# ── what each parameter becomes ──────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(("given", "want"), [
    ({"temperature": 0.5}, ["temperature(0.5)"]),
    ({"temperature": 0.5, "dynatemp_range": 0.7, "dynatemp_exponent": 2},
     ["dynamic_temperature(0, 1.2, 2)"]),
    ({"smoothing_factor": 0.3, "smoothing_curve": 2}, ["smoothing(0.3, 2)"]),
    ({"top_n_sigma": 1.0}, ["top_n_sigma(1)"]), ({"top_n_sigma": -0.5}, []),
    ({"typical_p": 0.9}, ["typical_p(0.9)"]), ({"mirostat": 1}, ["mirostat_1(5, 0.1)"]),
    ({"mirostat": 2, "mirostat_tau": 3, "mirostat_eta": 0.2}, ["mirostat_2(3, 0.2)"]),
    ({"xtc_probability": 0.5}, ["xtc(0.5, 0.1, (0, 13))"]),  # the end token and the new line
    ({"adaptive_target": 0.3}, ["adaptive_p(0.3, 0.9)"]),
    ({"repetition_penalty": 1.2}, ["repetition_penalty(1.2)"]),
    ({"repetition_penalty": 1.2, "repeat_last_n": 5}, ["repetition_penalty(1.2, 1, 5)"]),
    ({"repetition_penalty": 1.2, "repeat_last_n": 0}, []),
    ({"frequency_penalty": 0.2, "presence_penalty": 0.1},
     ["frequency_penalty(0.2)", "presence_penalty(0.1)"]),
    ({"dry_multiplier": 0.8, "dry_penalty_last_n": 9}, ["dry(0.8, 1.75, 2, 9, ((13,),))"]),
    ({"dry_multiplier": 0.8, "dry_penalty_last_n": 0}, []),
    ({"dry_multiplier": 0.8, "dry_sequence_breakers": []}, ["dry(0.8)"]),
    ({"no_repeat_ngram_size": 2}, ["no_repeat_ngram(2)"]),
    ({"bad_words": ["bc"]}, ["bad_words(((1, 2), (12, 1, 2)))"]),
    ({"logit_bias": {"b": 2}}, ["logit_bias((((1,), 2.0),))"]),
    ({"allowed_token_ids": [4, 5]}, ["allowed_ids((4, 5))"]),
    ({"min_new_tokens": 4}, ["min_new_tokens(4, (0,))"]),
    ({"min_new_tokens": 4, "stop_token_ids": [7]}, ["min_new_tokens(4, (0, 7))"]),
    ({"min_new_tokens": 4, "stop_token_ids": [7], "ignore_eos": True}, ["min_new_tokens(4, (7,))"]),
    ({"min_length": 9}, ["min_length(9, (0,))"]),
    ({"forced_bos_token_id": 4}, ["forced_first((4,))"]),
    ({"forced_eos_token_id": 4, "max_new_tokens": 7}, ["forced_last(10, (4,))"]),
    ({"forced_eos_token_id": [4, 5], "max_length": 8}, ["forced_last(8, (4, 5))"]),
    ({"forced_eos_token_id": 4}, ["forced_last(131, (4,))"]),  # 3 of the prompt and 128
    ({"exponential_decay_length_penalty": [2, 1.5]}, ["exponential_decay(2, 1.5, (0,))"]),
    ({"exponential_decay_length_penalty": [np.int64(2), np.float32(1.5)]},
     ["exponential_decay(2, 1.5, (0,))"]),
    ({"suppress_tokens": 3}, ["suppress((3,))"]),
    ({"begin_suppress_tokens": [3, 4]}, ["begin_suppress((3, 4))"]),
    ({"renormalize_logits": True}, []), ({"remove_invalid_values": True}, []),
])
def test_what_a_parameter_becomes(ask, given, want):
    assert rules(ask(do_sample=True, **given)) == want


def test_functions_become_rules(ask):
    def mine(ids, logits):
        return logits

    def allowed(batch, ids):
        return [1]

    found = ask(logits_processor=[mine, mine], prefix_allowed_tokens_fn=allowed, do_sample=True)
    assert [(r.name, r.data) for r in found.request.rules] == [
        ("prefix_allowed", allowed), ("custom", mine), ("custom", mine)]
    assert [r.data for r in ask(logits_processor=mine, do_sample=True).request.rules] == [mine]


def test_the_flag_that_cleans_a_row(ask):
    assert ask(remove_invalid_values=True).request.repair and not ask().request.repair


# ── order ────────────────────────────────────────────────────────────────────────────────────────
GIVEN = {"temperature": 0.5, "top_k": 4, "top_p": 0.9, "repetition_penalty": 1.2}


@pytest.mark.parametrize(("order", "want"), [
    (None, ["repetition_penalty(1.2)", "temperature(0.5)", "top_k(4)", "top_p(0.9)"]),
    ("hf", ["repetition_penalty(1.2)", "temperature(0.5)", "top_k(4, 1)", "top_p(0.9)"]),
    ("sglang", ["repetition_penalty(1.2, 0)", "temperature(0.5)", "top_p(0.9)", "top_k(4)"]),
    ("llama.cpp", ["repetition_penalty(1.2, 1, 64)", "top_k(4)", "top_p(0.9)", "min_p(0.05)",
                   "temperature(0.5)"]),
    (["top_p", "penalties", "temp", "top_k", "temp"],
     ["top_p(0.9)", "repetition_penalty(1.2)", "temperature(0.5)", "top_k(4)",
      "temperature(0.5)"]),
])
def test_the_order_is_the_dialect_s_or_one_s_own(ask, order, want):
    assert rules(ask(order=order, **GIVEN)) == want


def test_a_parameter_without_a_stage_is_refused_by_name(ask):
    with pytest.raises(ParameterError, match=r"top_p=0\.9: your own order has no stage top_p; put "
                                             "top_p into it") as error:
        ask(order=["top_k", "temp", "penalties"], **GIVEN)
    assert error.value.name == "top_p"
    with pytest.raises(ParameterError, match=r"typical_p=0\.5: vllm has no stage typical_p"):
        ask(order="vllm", typical_p=0.5)
    with pytest.raises(ParameterError, match="xtc_probability"):
        ask(order="hf", xtc_probability=0.5)
    assert rules(ask(order=["temp"], temperature=0.5, top_p=1.0)) == ["temperature(0.5)"]


def test_what_the_model_s_file_asks_and_the_order_lacks_is_noted(ask):
    found = ask({"top_p": 0.9, "typical_p": 0.5}, order="vllm", temperature=0.5)
    assert rules(found) == ["temperature(0.5)", "top_p(0.9)"] and found.params.typical_p == 1.0
    assert found.notes == (
        "generation config not applied: typical_p=0.5: vllm has no stage typical_p",)


def test_what_the_model_s_file_gets_wrong_is_noted(ask):
    found = ask({"suppress_tokens": [3, 99], "bad_words_ids": 5, "top_k": 3}, do_sample=True)
    assert rules(found) == ["top_k(3)"]
    assert [re.sub(":.*", "", n) for n in found.notes] == ["generation config not applied"] * 2
    assert found.params.suppress_tokens is None and found.params.bad_words is None


def test_infill_is_a_stage_without_a_parameter(ask):
    found = ask(order=["top_k", "infill"], top_k=5)
    assert [r.name for r in found.request.rules] == ["top_k", "infill"]
    spelling = found.request.rules[1].data
    assert spelling.pieces[1] == b"b" and spelling.ends == (0,)
    with pytest.raises(ParameterError, match="infill needs an end token"):
        ask(order=["infill"], do_sample=True, ends=())
    with pytest.raises(PromptError, match="without a tokenizer"):
        ask(order=["infill"], do_sample=True, words=False)


def test_adaptive_p_must_be_the_last(ask):
    with pytest.raises(ParameterError, match=r"adaptive_target=0\.3: it must be the last stage, "
                                             "and top_k is behind it"):
        ask(order=["adaptive_p", "top_k"], adaptive_target=0.3, top_k=3)
    with pytest.raises(ParameterError, match="adaptive_p is behind it"):
        ask(order=["adaptive_p", "adaptive_p"], adaptive_target=0.3)
    assert rules(ask(adaptive_target=0.3, top_k=3)) == ["top_k(3)", "adaptive_p(0.3, 0.9)"]


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("mode", [{}, {"do_sample": True}, {"do_sample": False}, {"num_beams": 3}])
def test_the_parameters_of_a_result_ask_for_the_same_again(ask, name, mode):
    given = {"order": name, "repetition_penalty": 1.3, "logit_bias": {"b": 1, "4": False},
             **mode}
    for model in ({}, {"temperature": 0.6, "top_k": 7, "typical_p": 0.5}):
        first = ask(model, **given)
        again = ask(model, **first.params.to_json())
        assert (rules(again), again.params) == (rules(first), first.params)


def test_biases_of_sequences_can_be_written_as_json(ask):
    for value in ({(1, 2): 3.0, 4: 1.0, "5": 2.0}, {(1,): -float("inf")}, {4: -float("inf")}):
        first = ask(logit_bias=value, do_sample=True)
        written = json.loads(json.dumps(first.params.to_json(), allow_nan=False))
        assert rules(ask(**written)) == rules(first) and first.origin["logit_bias"] == "user"


# ── greedy ───────────────────────────────────────────────────────────────────────────────────────
def test_what_shapes_the_text_counts_under_greedy_too(ask):
    found = ask(temperature=0, repetition_penalty=1.2, dry_multiplier=0.5, bad_words=[[3]],
                dry_sequence_breakers=[])
    assert rules(found) == ["repetition_penalty(1.2)", "dry(0.5)", "bad_words(((3,),))", "greedy()"]
    assert found.notes == () and found.params.do_sample is False


def test_greedy_stands_where_the_temperature_does(ask):
    given = {"do_sample": False, "top_k": 3, "typical_p": 0.5, "top_p": 0.9}
    found = ask(order="llama.cpp", **given)  # typical_p may take the likeliest token away
    assert rules(found) == ["top_k(3)", "typical_p(0.5)", "greedy()"]
    assert found.notes == ("top_p=0.9 changes nothing: greedy takes the likeliest token",)
    found = ask(**given)
    assert rules(found) == ["greedy()"] and len(found.notes) == 3
    assert rules(ask(order=["top_k", "typical_p"], do_sample=False, top_k=3, typical_p=0.5)) == [
        "top_k(3)", "typical_p(0.5)", "greedy()"]


def test_a_watermark_that_moves_values_stands_before_greedy(ask):
    found = ask(temperature=0, watermark={"kind": "kgw"})
    assert [r.name for r in found.request.rules] == ["kgw", "greedy"]


def test_what_is_in_the_draw_is_refused_where_none_is(ask):
    for given in ({"temperature": 0}, {"num_beams": 2}, {"strategy": Beam(2)}):
        with pytest.raises(ParameterError, match="gumbel_watermark belongs to the draw") as e:
            ask(watermark={"kind": "gumbel"}, **given)
        assert e.value.name == "watermark"
    with pytest.raises(ParameterError, match="xtc belongs to the draw of a token, and a search"):
        ask(xtc_probability=0.5, num_beams=2)
    assert "xtc_probability=0.5 changes" in ask(xtc_probability=0.5, temperature=0).notes[0]
    assert [r.name for r in ask(xtc_probability=0.5, temperature=0, order="llama.cpp").request.rules
            ][-2:] == ["xtc", "greedy"]  # there it comes first, and takes the likeliest away
    found = ask({"watermarking_config": {"kind": "gumbel"}}, temperature=0)
    assert rules(found) == ["greedy()"] and found.params.watermark is None
    assert found.notes[0].startswith("generation config not applied: watermark=")


# ── searches ─────────────────────────────────────────────────────────────────────────────────────
def test_a_search_is_shaped_by_what_is_asked_and_by_the_model_s_bans(ask):
    model = {"temperature": 0.6, "typical_p": 0.5, "repetition_penalty": 1.2,
             "bad_words_ids": [[3]]}
    found = ask(model, num_beams=3, top_k=4)
    assert rules(found) == ["repetition_penalty(1.2)", "bad_words(((3,),))", "top_k(4)"]
    assert len(found.notes) == 2 and all("shapes nothing unasked" in n for n in found.notes)
    assert (found.params.temperature, found.params.typical_p) == (1.0, 1.0)


def test_a_dialect_s_draw_does_not_reach_a_search(ask):
    found = ask(order="llama.cpp", num_beams=3, repetition_penalty=1.2)
    assert rules(found) == ["repetition_penalty(1.2, 1, 64)"] and found.notes == ()
    assert isinstance(ask(order="mlx", num_beams=2).request.strategy, Beam)


def test_a_dialect_that_draws_makes_a_request_a_sampling_one(ask):
    assert rules(ask(order="llama.cpp"))[-1] == "temperature(0.8)"
    assert rules(ask(order="hf")) == ["greedy()"]
    assert rules(ask(order="hf", do_sample=True)) == ["top_k(50, 1)"]
    assert isinstance(ask(order="llama.cpp").request.strategy, Sample)


# ── choice ───────────────────────────────────────────────────────────────────────────────────────
def test_a_choice_is_a_rule_and_a_stop_of_one_constraint(ask):
    found = ask(choice=["bc", "d"], do_sample=True)
    [rule] = found.request.rules
    [stop] = [s for s in found.request.stops if type(s).__name__ == "Complete"]
    assert rule.name == "constrain" and rule.data is stop.constraint and stop.which == "choice"
    with pytest.raises(ParameterError, match="choice"):
        ask(choice="bc")
    with pytest.raises(ParameterError, match=r"choice.*hf has no stage choice"):
        ask(choice=["bc"], order="hf")


# ── notes ────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(("given", "note"), [
    ({"xtc_threshold": 0.2}, "xtc_threshold=0.2 changes nothing: no xtc_probability is asked for"),
    ({"dry_base": 2.0}, "dry_base=2.0 changes nothing: no dry_multiplier"),
    ({"mirostat_tau": 3.0}, "mirostat_tau=3.0 changes nothing: no mirostat"),
    ({"dynatemp_exponent": 2.0}, "dynatemp_exponent=2.0 changes nothing: no dynatemp_range"),
    ({"repeat_last_n": 9}, "repeat_last_n=9 changes nothing: no repetition_penalty"),
    ({"exponential_decay_length_penalty": (1, 2.0), "ends": ()}, "this model has no end token"),
    ({"order": "llama.cpp", "mirostat": 2, "top_k": 3},
     "top_k=3 is not applied: in llama.cpp mirostat takes its place"),
    ({"order": "hf", "bad_words": [[0], [3]]}, "bad_words: an end token is none, as in transfo"),
    ({"order": "vllm", "bad_words": [[3]]}, "bad_words: vLLM looks for them in what was written"),
])
def test_notes(ask, given, note):
    notes = ask(do_sample=True, **given).notes
    assert len(notes) == 1 and note in notes[0]


def test_a_penalty_in_use_reads_its_window_without_a_note(ask):
    assert ask(do_sample=True, frequency_penalty=0.5, repeat_last_n=9).notes == ()


# ── values checked to the bottom ─────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("given", [
    {"logit_bias": {99: 1}}, {"logit_bias": "x"}, {"bad_words": 3}, {"bad_words": [[14]]},
    {"dry_sequence_breakers": [3], "dry_multiplier": 1}, {"allowed_token_ids": [14]},
    {"allowed_token_ids": []}, {"suppress_tokens": [14]}, {"begin_suppress_tokens": [99]},
    {"forced_bos_token_id": 14}, {"forced_eos_token_id": [14]},
    {"exponential_decay_length_penalty": 3}, {"exponential_decay_length_penalty": [1]},
    {"exponential_decay_length_penalty": [-1, 2]}, {"exponential_decay_length_penalty": [1, 0]},
    {"exponential_decay_length_penalty": ["1", 2]}, {"exponential_decay_length_penalty": [1, "2"]},
    {"exponential_decay_length_penalty": [1, True]},
    {"exponential_decay_length_penalty": [1, float("nan")]},
    {"prefix_allowed_tokens_fn": 5}, {"prefix_allowed_tokens_fn": "x"}, {"logits_processor": "x"},
    {"logits_processor": [print, 5]}, {"logits_processor": int}, {"choice": []}, {"choice": 5},
    {"watermark": 5}, {"watermark": {"kind": "x"}}, {"order": 5}, {"order": "x y"},
    {"mirostat": 3}, {"typical_p": 1.5}, {"adaptive_decay": 1.0}, {"top_h": 0},
], ids=repr)
def test_bad_values_are_refused_by_name(ask, given):
    with pytest.raises(ParameterError) as error:
        ask(do_sample=True, **given)
    name = next(iter(given))
    assert error.value.name == name and str(error.value).startswith(name)
    assert "\n" not in str(error.value) and len(str(error.value)) < 300


def test_a_rule_of_one_s_own_goes_in_as_it_is(make):
    @rule()
    def halved(rows, by):
        """Divide all logits."""
        return rows.values / by

    lm = make(zoo.tiny(vocab_size=12))
    try:
        one = lm.next([1, 2], logits_processor=halved(2))
        assert one.probs == pytest.approx(lm.next([1, 2], temperature=2.0).probs)
        both = lm.next([1, 2], logits_processor=[halved(2), lambda ids, logits: logits / 2])
        assert both.probs == pytest.approx(lm.next([1, 2], temperature=4.0).probs)
    finally:
        del KINDS["halved"]
