"""The user's values, else the model's, else the table's; and what makes a request sample."""
import pytest

from unspool.core.defaults import TRUNCATION, decide_sampling, merged
from unspool.core.params import Params, fields

HOTEL = {"temperature": 0.6, "top_p": 0.9, "do_sample": True, "eos_token_id": [1, 2],
         "pad_token_id": 0, "transformers_version": "5.0"}


def test_the_user_outranks_the_model_and_the_model_the_table():
    params, origin, notes = merged(Params(top_p=0.5), HOTEL)
    assert (params.top_p, params.temperature, params.min_p) == (0.5, 0.6, 0.0)
    assert (origin["top_p"], origin["temperature"], origin["min_p"]) == ("user", "model", "default")
    assert notes == ()
    assert params.eos_token_id is None  # the model's end tokens are the model room's to unite


def test_a_neutral_value_of_the_user_outranks_the_model_too():
    params, origin, _ = merged(Params(top_k=0, top_p=1.0), {"top_k": 50, "top_p": 0.9})
    assert (params.top_k, params.top_p) == (0, 1.0)
    assert origin["top_k"] == origin["top_p"] == "user"


def test_nothing_given_gives_the_table():
    params, origin, notes = merged(Params(), {})
    assert set(origin.values()) == {"default"} and notes == ()
    assert params.max_new_tokens == 128
    for name, row in fields().items():
        value = getattr(params, name)
        assert value == row.default if row.built else value is None


@pytest.mark.parametrize(("config", "applied", "word"), [
    ({"penalty_alpha": 0.6, "top_k": 9}, {"top_k": 9}, "only a request names it"),
    ({"guidance_scale": 1.5}, {}, "only a request names it"),
    ({"strategy": "beam:5"}, {}, "only a request names it"),
    ({"num_beam_groups": 2, "num_beams": 4}, {"num_beams": 4}, "only a request names it"),
    ({"token_healing": True}, {}, "not in this version"),
    ({"order": "hf"}, {}, "only a request names it"),
    ({"wobble": 3}, {}, "not a known parameter"),
    ({"temperature": float("nan")}, {}, "must be a number"),
    ({"top_k": "50"}, {}, "must be a whole number"),
    ({"max_tokens": 5, "max_new_tokens": 6}, {"max_new_tokens": 5}, "twice"),
    ({"mirostat": 2, "adaptive_target": 0.3}, {"mirostat": 2}, "contradict"),
])
def test_what_cannot_be_applied_becomes_a_note(config, applied, word):
    params, origin, notes = merged(Params(), config)
    assert len(notes) == 1 and word in notes[0]
    assert {n: getattr(params, n) for n, from_ in origin.items() if from_ == "model"} == applied


def test_neutral_values_of_later_parts_leave_no_note():
    assert merged(Params(), {"guidance_scale": 1.0, "penalty_alpha": 0.0}).notes == ()


def test_a_dialect_s_defaults_stand_between_the_model_s_and_the_table_s():
    dialect = {"temperature": 0.8, "top_k": 40, "top_p": 0.95}
    params, origin, notes = merged(Params(top_k=5), {"top_p": 0.5}, dialect)
    assert (params.top_k, params.top_p, params.temperature) == (5, 0.5, 0.8) and notes == ()
    assert [origin[n] for n in ("top_k", "top_p", "temperature", "min_p")] == [
        "user", "model", "dialect", "default"]


def test_a_dialect_s_temperature_0_does_not_meet_a_user_who_draws():
    assert merged(Params(), {}, {"temperature": 0.0}).params.temperature == 0
    for user in (Params(do_sample=True), Params(strategy="sample")):
        assert merged(user, {}, {"temperature": 0.0}).params.temperature == 1


@pytest.mark.parametrize(("user", "config", "dialect", "wanted"), [
    ({}, {}, {"temperature": 0.8}, "sample"), ({}, {}, {"temperature": 0.0}, "greedy"),
    ({}, {}, {"top_k": 50}, "greedy"), ({"top_p": 0.9}, {}, {"top_k": 50}, "sample"),
    ({}, {"do_sample": False}, {"temperature": 0.8}, "greedy"),
    ({"do_sample": False}, {}, {"temperature": 0.8}, "greedy"),
    ({"temperature": 0}, {}, {"temperature": 0.8}, "greedy"),
])
def test_an_engine_that_draws_unasked_does_so_here(user, config, dialect, wanted):
    assert decide_sampling(Params.of(user), config, dialect) == wanted


def test_the_config_of_transformers_leaves_no_note():
    peer = pytest.importorskip("transformers", reason="the peer writes the file")
    assert merged(Params(), peer.GenerationConfig().to_dict()).notes == ()


@pytest.mark.parametrize(("user", "config", "limits"), [
    ({}, {}, (128, None)), ({"max_length": 300}, {}, (None, 300)),
    ({}, {"max_length": 300}, (None, 300)), ({}, {"max_new_tokens": 9}, (9, None)),
    ({"max_length": 300}, {"max_new_tokens": 9}, (None, 300)),
    ({"max_new_tokens": 7}, {"max_length": 20}, (7, None)),
    ({"max_new_tokens": 128}, {"max_length": 20}, (128, None)),
    ({"max_new_tokens": 7, "max_length": 300}, {}, (7, 300)),
])
def test_the_users_limit_replaces_the_models(user, config, limits):
    params = merged(Params.of(user), config).params
    assert (params.max_new_tokens, params.max_length) == limits


def test_the_models_beams_do_not_meet_a_user_who_samples():
    assert merged(Params(), {"num_beams": 4}).params.num_beams == 4
    for user in (Params(temperature=0.8), Params(do_sample=True), Params(strategy="greedy"),
                 Params(top_p=0.9)):
        result = merged(user, {"num_beams": 4})
        assert result.params.num_beams == 1 and result.notes == ()


def test_more_continuations_than_the_models_beams():
    """The user's n stands; the model's width that does not fit it is noted."""
    params, _, notes = merged(Params(n=8), {"num_beams": 4})
    assert (params.n, params.num_beams) == (8, 1) and "num_beams" in notes[0]


def test_going_on_with_a_message_opens_no_new_one():
    params, origin, _ = merged(Params(continue_final_message=True), {})
    assert params.add_generation_prompt is None and "add_generation_prompt" not in origin


@pytest.mark.parametrize(("user", "config", "wanted"), [
    ({"temperature": 0}, {"do_sample": True}, "greedy"),
    ({"temperature": 0, "top_p": 0.9}, {}, "greedy"),
    ({"do_sample": False, "temperature": 0.8}, HOTEL, "greedy"),
    ({"do_sample": True}, {"do_sample": False}, "sample"),
    ({"temperature": 0.8}, {"do_sample": False}, "sample"),
    ({"temperature": 1.0}, {}, "sample"),
    *[({name: 0.3}, {}, "sample") for name in TRUNCATION if name not in ("top_k", "mirostat")],
    ({"mirostat": 2}, {}, "sample"),
    ({"repetition_penalty": 1.3, "dry_multiplier": 0.8, "xtc_threshold": 0.2}, {}, "greedy"),
    ({"top_p": 0.9}, {"do_sample": False}, "sample"),
    ({"top_k": 5}, {}, "sample"), ({"min_p": 0.1}, {}, "sample"),
    ({"top_p": 1.0, "top_k": 0, "min_p": 0.0}, {}, "greedy"),
    ({}, HOTEL, "sample"), ({}, {**HOTEL, "do_sample": False}, "greedy"),
    ({}, {"temperature": 0.6}, "sample"), ({}, {"temperature": 0.0}, "greedy"),
    ({}, {"top_k": 50}, "sample"), ({}, {"top_k": 0}, "greedy"), ({}, {"top_p": 1.0}, "greedy"),
    ({"num_beams": 1}, HOTEL, "sample"), ({"max_new_tokens": 5}, HOTEL, "sample"),
    ({}, {}, "greedy"),
])
def test_greedy_or_sampling_is_the_first_that_applies(user, config, wanted):
    assert decide_sampling(Params.of(user), config) == wanted
