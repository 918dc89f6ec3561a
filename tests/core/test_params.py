"""The one table of parameters: every field against every bad value, names, conflicts, the page."""
import dataclasses
import json
import math
import runpy
from pathlib import Path

import numpy as np
import pytest

from unspool.core.errors import ParameterError
from unspool.core.naming import FOREIGN, HTTP
from unspool.core.params import Params, fields, spellings
from unspool.core.shaping import Shaping
from unspool.core.values import Range, Repeats, shown

ROOT = Path(__file__).resolve().parents[2]
NAN, INF = float("nan"), float("inf")
WRONG = {  # what no field of a type may take, whatever its range
    "int": ["7", b"7", 1.5, 2.0, True, np.True_, NAN, INF, -INF, [1], {}, 2**70, 10**5000, 1j],
    "float": ["0.5", b"1", True, np.False_, NAN, INF, -INF, np.nan, [0.5], {}, 10**400, 1j],
    "bool": [0, 1, 0.0, NAN, INF, "true", "", [], 2**70],
    "str": [0, 1.5, True, NAN, INF, b"x", ["x"], 2**70, "\ud800", "x" * 10**5],
    "bool | str": [0, 1, 1.5, NAN, INF, "", "true", "Never", [], 2**70],
    "tuple[int, ...]": ["1", 1.5, True, NAN, INF, -1, [-1], [1.5], [True], [NAN], ["1"], [2**31],
                        [2**63], {1}, {1: 2}, [[1]], list(range(10**5))],
    "tuple[str, ...]": [1, True, NAN, INF, b"x", "", [""], ["a", ""], [1], [None], {"x"},
                        ["\udfff"], ["x" * 1025], [str(i) for i in range(65)], ["x"] * 500_000],
    "Repeats": [1, True, NAN, INF, "x", [3, 1, 2], {}, {"min_count": 2}, {"max_pattern_size": 1.5},
                {"max_pattern_size": True}, {"max_pattern_size": NAN}, {"max_pattern_size": -1},
                {"max_pattern_size": 1025}, {"max_pattern_size": 3, "min_count": 1},
                {"max_pattern_size": 3, "min_pattern_size": 4},
                {"max_pattern_size": 3, "min_pattern_size": 0},
                {"max_pattern_size": 3, "extra": 1}],
    "str | Strategy": [1, True, NAN, INF, "", b"beam", [], {}, object(), object, "x" * 4001],
    "Any": [],
}
OPEN = {"Any": object()}


def edges(row):
    """(values just inside the range, values just outside) of a parameter that is a number."""
    span = row.range
    if row.type == "int":
        return [int(span.low), int(span.high)], [int(span.low) - 1, int(span.high) + 1]
    inside, outside = [], []
    if span.low > -INF:
        above = math.nextafter(span.low, INF)
        inside.append(above if span.strict else span.low)
        outside.append(span.low if span.strict else math.nextafter(span.low, -INF))
    if span.high < INF:
        inside.append(span.high)
        outside.append(math.nextafter(span.high, INF))
    return inside, outside


def bad_values():
    for name, row in fields().items():
        for value in WRONG[row.type]:
            yield name, value
        if row.type in ("int", "float"):
            for value in edges(row)[1]:
                yield name, value
        if not row.built:
            yield name, OPEN.get(row.type, "anything")


def label(value):
    return value if isinstance(value, str) and len(value) < 50 else shown(value)


@pytest.mark.parametrize(("name", "value"), list(bad_values()), ids=label)
def test_a_bad_value_is_refused_in_one_line_that_names_it(name, value):
    with pytest.raises(ParameterError) as refused:
        Params.of({name: value})
    message = str(refused.value)
    assert message.startswith(name)
    assert refused.value.name == name
    assert "; " in message, "after the rule comes the fix"
    assert "\n" not in message and len(message) < 250
    json.dumps(message, allow_nan=False)


@pytest.mark.parametrize("name", list(fields()))
def test_none_is_unset_and_neutral_values_pass(name):
    row = fields()[name]
    assert Params.of({name: None}) == Params()
    for value in row.neutral:
        params = Params.of({name: value})
        assert name in params.given()
        assert params.active(name) is None


@pytest.mark.parametrize("name", [n for n, r in fields().items() if r.type in ("int", "float")])
def test_the_edges_of_a_range_are_inside(name):
    row = fields()[name]
    for value in edges(row)[0]:
        if row.built:
            assert getattr(Params.of({name: value}), name) == value
        elif not row.is_neutral(value):
            with pytest.raises(ParameterError, match="not in this version"):
                Params.of({name: value})


@pytest.mark.parametrize("name", list(fields()))
def test_a_parameter_is_fully_described(name):
    row = fields()[name]
    assert row.help and row.group and row.part >= 1
    assert row.type in WRONG
    if row.built and row.default is not None:
        assert getattr(Params.of({name: row.default}), name) == row.default


@pytest.mark.parametrize("spelling", list(spellings()))
def test_every_spelling_means_its_parameter(spelling):
    row, factor = spellings()[spelling]
    samples = {"int": 1, "float": min(1.0, row.range.high), "bool": True,
               "str": row.range.words[0] if row.range.words else "x",
               "bool | str": "never",
               "tuple[int, ...]": [3], "tuple[str, ...]": ["x"], "Any": "x",
               "Repeats": {"max_pattern_size": 3}, "str | Strategy": "greedy"}
    value = samples[row.type] if row.built or not row.neutral else row.neutral[0]
    if not row.built and not row.neutral:
        with pytest.raises(ParameterError, match=f"{row.name}=.*not in this version"):
            Params.of({spelling: value})
        return
    given = Params.of({spelling: value}).given()
    assert list(given) == [row.name]
    assert given == Params.of({row.name: value * factor if factor != 1 else value}).given()


def test_every_name_of_the_other_programs_is_known():
    """The parameters of transformers' generation config that ask for something."""
    transformers = pytest.importorskip("transformers", reason="the peer's own list of names")
    notes = {"_from_model_config", "transformers_version", "bos_token_id", "pad_token_id",
             "decoder_start_token_id", "is_assistant", "continuous_batching_config"}
    names = set(vars(transformers.GenerationConfig())) - notes
    assert names - set(spellings()) - set(FOREIGN) == set()


def test_what_is_built():
    """The list is closed: a parameter that nothing reads must not be accepted."""
    shaping = {field.name for field in dataclasses.fields(Shaping)}
    assert {name for name, row in fields().items() if row.built and name not in shaping} == {
        "max_new_tokens", "max_length", "min_new_tokens", "min_length", "max_time", "stop",
        "stop_token_ids", "eos_token_id", "ignore_eos", "include_stop_str_in_output",
        "skip_special_tokens", "repetition_detection", "confidence_stop", "strategy", "do_sample",
        "n", "num_beams", "length_penalty", "early_stopping", "seed", "logprobs", "why",
        "cache_salt", "add_generation_prompt", "continue_final_message", "add_special_tokens",
        "use_cache",
        "best_of", "length_penalty_type", "coverage_penalty", "patience", "num_beam_groups",
        "diversity_penalty", "sibling_penalty", "must_contain", "must_contain_ordered",
        "penalty_alpha", "reward", "utility", "utility_weighted", "answer", "search_budget",
        "search_branching", "gate_confidence", "gate_window",
        "ensemble", "ensemble_weights", "ensemble_kind", "dola_layers", "contrast_alpha",
        "contrast_weight", "amateur_model", "amateur_temperature", "expert_model",
        "anti_expert_model", "experts_alpha", "context_alpha", "context_free_prompt",
        "guidance_scale", "negative_prompt", "attribute", "attribute_weight", "boosts",
        "boost_weight",
    }
    assert {name for name in shaping if not fields()[name].built} == {
        "structured_outputs", "response_format", "json_schema", "regex", "grammar"}


def test_where_the_default_is_below_0_so_is_every_value_that_is_off():
    for name in ("top_n_sigma", "adaptive_target"):
        assert Params.of({name: -0.5}).active(name) is None
    assert Params(top_n_sigma=0.0).active("top_n_sigma") is None
    assert Params(adaptive_target=0.0).active("adaptive_target") == 0.0


@pytest.mark.parametrize(("wrong", "right"), [
    ("temprature", "temperature"), ("max_new_token", "max_new_tokens"), ("top-p", "top_p"),
    ("Temperature", "temperature"), ("stop_string", "stop_strings (here stop)"),
    ("num_beam", "num_beams"), ("repetion_penalty", "repetition_penalty"),
])
def test_an_unknown_name_gets_the_nearest(wrong, right):
    for value in (1, None):
        with pytest.raises(ParameterError) as refused:
            Params.of({wrong: value})
        assert str(refused.value) == f"{wrong!r}: not a known parameter; did you mean {right}?"


@pytest.mark.parametrize("name", ["zzzz", "", 5, "x" * 10**6, "\n"])
def test_a_name_like_no_other_is_refused_all_the_same(name):
    with pytest.raises(ParameterError, match="not a known parameter; see") as refused:
        Params.of({name: 1})
    assert len(str(refused.value)) < 150 and "\n" not in str(refused.value)


def test_two_spellings_must_agree():
    assert Params.of({"max_tokens": 5, "max_new_tokens": 5}).max_new_tokens == 5
    assert Params.of({"max_tokens": 5, "max_new_tokens": None}).max_new_tokens == 5
    assert Params.of({"stop": "x", "stop_strings": ["x"]}).stop == ("x",)
    with pytest.raises(ParameterError, match=r"max_tokens=5 with max_new_tokens=6: .*agree"):
        Params.of({"max_tokens": 5, "max_new_tokens": 6})


def test_an_alias_in_another_unit_is_converted():
    assert Params.of({"t_max_predict_ms": 1500}).max_time == 1.5
    with pytest.raises(ParameterError):
        Params.of({"t_max_predict_ms": True})


def test_foreign_switches_pass_when_they_ask_for_nothing():
    assert Params.of({"output_scores": False, "user": None}) == Params()
    for name in (*FOREIGN, *HTTP):
        with pytest.raises(ParameterError, match=f"{name}=.*not a parameter here; "):
            Params.of({name: True})


def test_numbers_of_any_library_become_plain():
    params = Params.of({"max_tokens": np.int32(5), "temperature": np.float64(0.5), "top_p": 1,
                        "do_sample": np.True_, "stop_token_ids": np.int64(7)})
    found = [params.max_new_tokens, params.temperature, params.top_p, params.do_sample]
    assert [type(value) for value in found] == [int, float, float, bool]
    assert params.stop_token_ids == (7,) and type(params.stop_token_ids[0]) is int


def test_lists_become_tuples_without_doubles():
    assert Params(stop="x").stop == ("x",)
    assert Params(stop=["b", "a", "b"]).stop == ("b", "a")
    assert Params(eos_token_id=2).eos_token_id == (2,)
    assert Params(stop=[]).stop == ()


def test_the_constructor_checks_too():
    with pytest.raises(ParameterError):
        Params(temperature=NAN)
    with pytest.raises(ParameterError):
        dataclasses.replace(Params(), top_p=2)


def test_params_are_values():
    assert hash(Params(stop=["a"])) == hash(Params(stop="a"))
    with pytest.raises(dataclasses.FrozenInstanceError):
        Params().n = 3


def test_repetition_detection_has_defaults_and_an_off():
    assert Params(repetition_detection={"max_pattern_size": 3}).repetition_detection == (3, 1, 2)
    assert Params(repetition_detection=Repeats(4, 2, 3)).repetition_detection == (4, 2, 3)
    off = Params(repetition_detection={"max_pattern_size": 0, "min_pattern_size": 0})
    assert off.active("repetition_detection") is None


@pytest.mark.parametrize("given", [
    {"temperature": 0, "do_sample": True},
    {"strategy": "greedy", "do_sample": True},
    {"strategy": "sample", "do_sample": False},
    {"strategy": "greedy", "num_beams": 4},
    {"n": 5, "num_beams": 4},
    {"continue_final_message": True, "add_generation_prompt": True},
    {"mirostat": 2, "adaptive_target": 0.3},
])
def test_values_that_contradict_are_refused_naming_both(given):
    with pytest.raises(ParameterError) as refused:
        Params.of(given)
    assert all(name in str(refused.value) for name in given)
    for name in given:
        Params.of({name: given[name]})  # each alone is fine


@pytest.mark.parametrize("given", [
    {"strategy": "beam", "num_beams": 4}, {"strategy": "beam:4", "num_beams": 4},
    {"strategy": "sample", "num_beams": 1}, {"n": 5, "num_beams": 1}, {"n": 4, "num_beams": 4},
    {"temperature": 0, "do_sample": False}, {"temperature": 1e-300, "do_sample": True},
])
def test_values_that_agree_pass(given):
    assert Params.of(given).given() == given


def test_a_strategy_object_passes_and_prints():
    class Middle:
        def decide(self, job, slots):
            return ()

        def __repr__(self):
            return "middle()"

    params = Params(strategy=Middle())
    assert params.to_json() == {"strategy": "middle()"}


def test_json_gives_back_the_same_params():
    params = Params.of({"stop": ["a", "b"], "repetition_detection": {"max_pattern_size": 3},
                        "seed": 2**64 - 1, "temperature": 0.7, "early_stopping": "never",
                        "logit_bias": {}, "dry_sequence_breakers": []})
    assert Params.of(json.loads(json.dumps(params.to_json(), allow_nan=False))) == params


@pytest.mark.parametrize(("text", "whole", "inside", "outside"), [
    ("1..4", True, [1, 4], [0, 5]), ("0<..1", False, [5e-324, 1.0], [0.0, NAN, -1.0]),
    ("-2..", False, [-2.0, 1e300], [-2.1, INF]), ("3..", True, [3, 2**31 - 1], [2, 2**31]),
    (f"0..{2**64 - 1}", True, [2**64 - 1], [2**64]),
])
def test_ranges(text, whole, inside, outside):
    span = Range.of(text, whole)
    assert all(map(span.holds, inside)) and not any(map(span.holds, outside))


def test_the_page_is_printed_from_the_table():
    page = runpy.run_path(str(ROOT / "scripts" / "print_parameters.py"))["page"]()
    assert (ROOT / "docs" / "parameters.md").read_text(encoding="utf-8") == page, \
        "stale: run scripts/print_parameters.py --write"
    assert all(f"| `{name}` |" in page for name in fields())


ARRAYS = (np.array([5, 7]), [np.int64(5), np.int32(7)], (5, 7), {5, 7})


@pytest.mark.parametrize("value", ARRAYS, ids=repr)
def test_numbers_of_other_libraries_are_written_as_numbers(value):
    """What was given can be given again."""
    assert Params.of({"bad_words": value}).to_json() == {"bad_words": [5, 7]}
    assert Params.of({"logit_bias": {np.int64(5): np.float32(0.5)}}).to_json() == {
        "logit_bias": {"5": 0.5}}


def test_two_spellings_with_arrays_must_agree():
    one, same, other = np.array([1, 2]), np.array([1, 2]), np.array([1, 3])
    assert Params.of({"bad_words": one, "bad_words_ids": same}).bad_words is one
    with pytest.raises(ParameterError, match="two spellings of bad_words must agree"):
        Params.of({"bad_words": one, "bad_words_ids": other})


def test_an_array_of_ids_is_a_list_of_them():
    assert Params.of({"suppress_tokens": np.array([3, 5])}).suppress_tokens == (3, 5)
    for wrong in (np.array([0.5]), np.array([True]), np.array([[1, 2]])):
        with pytest.raises(ParameterError, match="suppress_tokens"):
            Params.of({"suppress_tokens": wrong})
