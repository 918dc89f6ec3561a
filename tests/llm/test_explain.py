import json

import models_zoo as zoo
import pytest

from unspool.core.errors import ParameterError, PromptError

DEFAULTS = {"do_sample": True, "temperature": 0.6, "top_p": 0.9, "penalty_alpha": 0.5,
            "transformers_version": "5.0"}  # fmt: skip


@pytest.fixture
def lm(make, kit):
    return make(zoo.markov(zoo.cycle(12)), kit.letters(), ends={5}, defaults=DEFAULTS)


def table(explanation):
    return {name: (value, source) for name, value, source in explanation.rows}


def test_every_value_and_its_source(lm):
    found = lm.explain("a", top_k=4, max_tokens=7, seed=3)
    rows = table(found)
    assert rows["top_k"] == (4, "user") and rows["max_new_tokens"] == (7, "user")
    assert rows["temperature"] == (0.6, "model") and rows["do_sample"] == (True, "model")
    assert rows["min_p"] == (0.0, "default") and rows["seed"] == (3, "user")
    assert found.order == ("temperature(0.6)", "top_k(4)", "top_p(0.9)")
    assert found.stops == ("EndTokens(5)", "MaxNew(7, max_new_tokens)")
    assert found.strategy.startswith("Sample(")
    assert any("penalty_alpha=0.5 (only a request names it)" in note for note in found.notes)
    assert lm.worker.thread is None  # nothing ran


def test_a_dialect_brings_its_order_and_its_defaults(lm):
    found = lm.explain("a", top_k=4, order="llama.cpp")
    rows = table(found)
    assert found.dialect == "llama.cpp" and rows["order"] == ("llama.cpp", "user")
    assert found.order == ("top_k(4)", "top_p(0.9)", "min_p(0.05)", "temperature(0.6)")
    assert rows["min_p"] == (0.05, "dialect") and rows["top_p"] == (0.9, "model")
    assert rows["repeat_last_n"] == (64, "dialect") and rows["typical_p"] == (1.0, "default")
    assert lm.explain("a").dialect == "unspool"
    own = lm.explain("a", order="top-p; temp", top_k=0)
    assert own.dialect == "your own order" and own.order == ("top_p(0.9)", "temperature(0.6)")
    assert table(own)["order"] == (["top_p", "temperature"], "user")


def test_every_stop_is_told_with_its_numbers(lm):
    found = lm.explain("a", stop=["ef", "d"], stop_token_ids=[4, 3], confidence_stop=0.2,
                       repetition_detection={"max_pattern_size": 3}, max_time=9, ignore_eos=True)
    assert found.stops == ("StopTokens(3, 4)", "StopStrings('d', 'ef')", "Repetition(3, 1, 2)",
                           "Confidence(0.2)", "MaxTime(9.0)", "MaxNew(128, max_new_tokens)")


def test_what_was_derived(lm):
    rows = table(lm.explain(strategy="beam"))
    assert rows["num_beams"] == (5, "derived") and rows["seed"][1] == "derived"
    assert rows["strategy"] == ("beam", "user")
    long = table(lm.explain([0] * 500))
    assert long["max_new_tokens"] == (12, "derived")


def test_without_a_prompt(lm):
    assert table(lm.explain())["max_new_tokens"] == (128, "default")
    assert table(lm.explain({"prompt": "a", "top_k": 3}))["top_k"] == (3, "user")


def test_json(lm):
    found = json.loads(json.dumps(lm.explain(strategy="beam:2").to_json(), allow_nan=False))
    assert list(found) == ["parameters", "strategy", "dialect", "order", "stops", "notes",
                           "mixes", "program"]
    assert all(list(row) == ["name", "value", "source"] for row in found["parameters"])


def test_refusals_are_those_of_the_request(lm):
    with pytest.raises(ParameterError, match="temprature"):
        lm.explain(temprature=1)
    with pytest.raises(ParameterError, match="does not fit"):
        lm.explain("a", max_new_tokens=512)
    with pytest.raises(PromptError):
        lm.explain("")


def test_the_default_model(smol):
    found = smol.explain()
    assert table(found)["max_new_tokens"] == (128, "default") and found.order == ("greedy()",)


def test_a_program_is_explained_stage_by_stage(lm):
    found = lm.explain("a", strategy="beam:3@4 >> sample:t=.5,guidance_scale=2", n=2,
                       repetition_penalty=1.2, boosts={"c": 1.5})
    assert [(part.plan, part.takes) for part in found.program] == [
        ("beam:num_beams=3@4", 1), ("sample:temperature=0.5,guidance_scale=2", 2)]
    assert [part.strategy.split("(")[0] for part in found.program] == ["Beam", "Sample"]
    assert [part.mixes for part in found.program] == [
        ("Boost(1.0)",), ("Guidance(2.0)", "Boost(1.0)")]
    assert found.program[0].order == ("repetition_penalty(1.2)",)
    assert found.program[1].order == ("repetition_penalty(1.2)", "temperature(0.5)", "top_p(0.9)")
    assert found.mixes == ("Boost(1.0)", "Guidance(2.0)")
    assert found.stops[0] == "EndOfStage(0, Tokens(4))"
    assert table(found)["strategy"] == (
        "beam:num_beams=3@4 >> sample:temperature=0.5,guidance_scale=2", "user")
    assert found.to_json()["program"][1]["takes"] == 2
    assert lm.explain("a", strategy="beam:3").program == ()


def test_a_schedule_stands_in_its_rule(lm):
    found = lm.explain("a", temperature="1.5..0.5/20", guidance_scale="3..1/9", top_p=1.0)
    assert found.order == ("temperature(1.5..0.5/20)",) and found.mixes == ("Guidance(3..1/9)",)
    assert table(found)["temperature"] == ("1.5..0.5/20", "user")
