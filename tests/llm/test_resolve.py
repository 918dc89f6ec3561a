import re

import pytest

from unspool.core.errors import ParameterError, PromptError
from unspool.llm.facts import Facts
from unspool.llm.plan import beam, sample
from unspool.llm.resolve import resolve
from unspool.strategies import Beam, Sample

PROMPT = [1, 2, 3]


@pytest.fixture
def ask(kit):
    """What a request with these parameters is resolved to."""

    def resolved(defaults=None, context=200, ends=(), prompt=PROMPT, **given):
        words, own = kit.letters(), defaults or {}
        facts = Facts("tiny", "reference", 12, context, words, frozenset(ends), own)
        return resolve(facts, prompt, given)

    return resolved


def rules(resolved):
    return [str(rule) for rule in resolved.request.rules]


# -------------------------------------------------------------------------- greedy or sampling
@pytest.mark.parametrize(
    ("user", "model", "expected"),
    [
        # nobody says anything
        ({}, {}, "greedy"),
        # the user's temperature 0 comes first
        ({"temperature": 0}, {"do_sample": True, "temperature": 0.7}, "greedy"),
        ({"temperature": 0, "do_sample": False}, {}, "greedy"),
        ({"temperature": 0, "top_p": 0.5}, {}, "greedy"),
        # then the user's do_sample
        ({"do_sample": True}, {}, "sample"),
        ({"do_sample": False, "temperature": 0.8, "top_k": 5}, {"do_sample": True}, "greedy"),
        # then the user's temperature or truncation
        ({"temperature": 0.8}, {"do_sample": False}, "sample"),
        ({"temperature": 1.0}, {}, "sample"),
        ({"top_k": 5}, {}, "sample"),
        ({"top_p": 0.9}, {"do_sample": False}, "sample"),
        ({"min_p": 0.1}, {}, "sample"),
        ({"top_k": 0, "top_p": 1.0, "min_p": 0.0}, {}, "greedy"),  # these cut nothing
        # then the model's do_sample
        ({}, {"do_sample": True}, "sample"),
        ({}, {"do_sample": False, "temperature": 0.7}, "greedy"),
        # then the model's temperature or truncation
        ({}, {"temperature": 0.7}, "sample"),
        ({}, {"top_k": 50}, "sample"),
        ({}, {"top_p": 1.0, "top_k": 0}, "greedy"),
        # a named strategy decides for itself
        ({"strategy": "greedy"}, {"do_sample": True, "temperature": 0.7}, "greedy"),
        ({"strategy": "sample"}, {"do_sample": False}, "sample"),
        ({"strategy": "top_p:.9"}, {"do_sample": False}, "sample"),
        ({"strategy": "sample:t=0"}, {}, "greedy"),
    ],
)
def test_greedy_or_sampling(ask, user, model, expected):
    found = ask(model, **user)
    assert isinstance(found.request.strategy, Sample)
    assert (rules(found) == ["greedy()"]) == (expected == "greedy")


def test_temperature_0_with_do_sample_names_both():
    with pytest.raises(ParameterError, match=r"temperature=0\.0 with do_sample=True"):
        resolve(Facts("t", "r", 12, 20), PROMPT, {"temperature": 0, "do_sample": True})


def test_the_models_values_fill_what_the_user_left_unset(ask):
    model = {"do_sample": True, "temperature": 0.6, "top_p": 0.9, "top_k": 50}
    assert rules(ask(model)) == ["temperature(0.6)", "top_k(50)", "top_p(0.9)"]
    found = ask(model, temperature=0.3, top_k=0)
    assert rules(found) == ["temperature(0.3)", "top_p(0.9)"]
    assert [found.origin[n] for n in ("temperature", "top_p", "min_p")] == [
        "user", "model", "default"]  # fmt: skip
    assert rules(ask(model, strategy="beam:3")) == []
    assert rules(ask(model, strategy="beam:3", top_k=4)) == ["top_k(4)"]


# -------------------------------------------------------------------------------------- search
def test_beams(ask):
    found = ask(num_beams=4, n=2, length_penalty=0.5, early_stopping="never", ends={3, 4})
    strategy = found.request.strategy
    assert strategy == Beam(4, 2, 0.5, "never", longest=128, ends=2)
    assert ask(strategy=beam(4)).request.strategy == ask(num_beams=4).request.strategy
    assert ask(strategy="beam").request.strategy.width == 5
    assert ask(strategy="beam").params.num_beams == 5
    assert "num_beams" not in ask(strategy="beam").origin  # derived
    assert ask({"num_beams": 3}).request.strategy.width == 3
    assert isinstance(ask({"num_beams": 3}, temperature=1.0).request.strategy, Sample)
    assert isinstance(ask({"num_beams": 3}, strategy="greedy").request.strategy, Sample)


def test_a_search_reads_enough_to_survive_its_end_tokens(ask):
    assert ask(num_beams=2, ends={3}).request.strategy.ends == 1
    assert ask(num_beams=2, ends={3}, eos_token_id=[3, 4, 5]).request.strategy.ends == 3
    assert ask(num_beams=2, ends={3}, stop_token_ids=[3, 7]).request.strategy.ends == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"num_beams": 2, "n": 3}, "n=3 with num_beams=2"),
        ({"strategy": "beam", "n": 6}, "n=6 with num_beams=5"),
        ({"num_beams": 2, "temperature": 0}, "temperature=0 with num_beams=2"),
        ({"strategy": "beam:2", "do_sample": True}, "do_sample=True: beam does not draw"),
        ({"strategy": "beam:2", "num_beams": 3}, "num_beams=3 with strategy=beam"),
        ({"strategy": Sample(), "num_beams": 2}, "num_beams=2: Sample(n=1) has no use for it"),
        ({"strategy": "mbr", "do_sample": False}, "do_sample=False: mbr draws its tokens"),
        ({"num_beams": 4, "num_beam_groups": 2, "do_sample": True}, "do_sample=True: diverse_beam"),
        ({"penalty_alpha": 0.6, "num_beams": 2}, "num_beams=2: contrastive has no use for it"),
        ({"strategy": "mbr", "temperature": 0}, "temperature=0: greedy leaves one continuation"),
        ({"num_beams": 2, "strategy": "sample"}, "strategy='sample' with num_beams=2"),
        ({"strategy": Sample(2), "n": 2}, "n=2 with a strategy object"),
    ],
)
def test_what_contradicts_a_search(ask, given, said):
    with pytest.raises(ParameterError, match=re.escape(said)):
        ask(**given)


def test_a_strategy_object_decides_for_itself(ask):
    own = Beam(3)
    found = ask(strategy=own, temperature=0.5)
    assert found.request.strategy is own and rules(found) == ["temperature(0.5)"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"length_penalty": 2.0}, "length_penalty=2.0: greedy has no use for it"),
        ({"early_stopping": True, "temperature": 0.5}, "early_stopping=True: sample has no use"),
        ({"strategy": Beam(2), "length_penalty": 2.0}, "length_penalty=2.0: Beam"),
        ({"strategy": Sample(), "do_sample": True}, "do_sample=True: Sample"),
    ],
)
def test_what_a_strategy_has_no_use_for_is_refused(ask, given, said):
    with pytest.raises(ParameterError, match=re.escape(said)):
        ask(**given)
    assert ask({"length_penalty": 2.0}).request.strategy == Sample()  # the model's: no search asked


def test_what_greedy_passes_over_is_noted(ask):
    found = ask(do_sample=False, temperature=0.7, top_k=4)
    assert rules(found) == ["greedy()"]
    assert found.notes == ("temperature=0.7 changes nothing: greedy takes the likeliest token",
                           "top_k=4 changes nothing: greedy takes the likeliest token")
    assert ask(temperature=0).notes == ask(do_sample=False, top_k=0).notes == ()


def test_the_model_s_shaping_does_not_reach_a_search_and_is_noted(ask):
    found = ask({"temperature": 0.6, "top_p": 0.9}, num_beams=3, top_p=0.8)
    assert rules(found) == ["top_p(0.8)"] and found.params.temperature == 1.0
    [note] = found.notes
    assert note.startswith("generation config not applied: temperature=0.6")


@pytest.mark.parametrize("given", [
    {}, {"temperature": 0.0}, {"temperature": 0.5, "seed": 3}, {"do_sample": True}, {"n": 2},
    {"num_beams": 3}, {"strategy": "beam:2", "length_penalty": 0.5}, {"strategy": "greedy"},
    {"strategy": "top_p:.9"}, {"max_length": 40}, {"eos_token_id": 3, "stop_token_ids": [5]},
    {"stop": ["ab", "c"], "max_time": 9}, {"repetition_detection": {"max_pattern_size": 3}},
])  # fmt: skip
@pytest.mark.parametrize("model", [{}, {"temperature": 0.6, "top_k": 7}, {"num_beams": 2}])
def test_the_parameters_of_a_result_ask_for_the_same_again(ask, model, given):
    first = ask(model, **given)
    again = ask(model, **first.params.to_json())
    assert again.request.strategy == first.request.strategy
    assert (rules(again), again.request.seed) == (rules(first), first.request.seed)
    assert again.params == first.params


def test_equal_texts_are_noted(ask):
    assert ask(n=2, strategy="greedy").notes == ask(n=2).notes
    assert "n greedy texts are equal" in ask(n=2).notes[0]
    assert ask(n=2, strategy=sample()).notes == ()


# -------------------------------------------------------------------------------------- length
@pytest.mark.parametrize(
    ("given", "model", "count", "which"),
    [
        ({}, {}, 128, "max_new_tokens"),
        ({"max_new_tokens": 7}, {}, 7, "max_new_tokens"),
        ({"max_tokens": 7}, {}, 7, "max_new_tokens"),
        ({"max_length": 10}, {}, 7, "max_length"),
        ({"max_length": 10, "max_new_tokens": 9}, {}, 7, "max_length"),
        ({"max_length": 10, "max_new_tokens": 5}, {}, 5, "max_new_tokens"),
        ({"max_length": 9999, "max_new_tokens": 5}, {}, 5, "max_new_tokens"),
        ({}, {"max_new_tokens": 9}, 9, "max_new_tokens"),
        ({}, {"max_length": 9}, 6, "max_length"),
        ({"max_new_tokens": 50}, {"max_length": 9}, 50, "max_new_tokens"),
        ({"max_new_tokens": 197}, {}, 197, "max_new_tokens"),
    ],
)
def test_how_much_is_written(ask, given, model, count, which):
    found = ask(model, **given)
    last = found.request.stops[-1]
    assert (last.count, last.which) == (count, which)
    assert found.notes == ()


def test_a_number_that_does_not_fit_is_refused_with_both(ask):
    with pytest.raises(ParameterError) as error:
        ask(max_new_tokens=198)
    assert str(error.value).startswith("max_new_tokens=198 does not fit: the prompt has 3 tokens "
                                       "and the context 200; at most 197")  # fmt: skip
    with pytest.raises(ParameterError, match="max_length=201 does not fit") as error:
        ask(max_length=201)
    assert error.value.name == "max_length"
    with pytest.raises(ParameterError, match="max_length=3 counts the prompt, which has 3"):
        ask(max_length=3)


def test_a_default_is_shortened_with_a_note(ask):
    found = ask(context=50)
    assert found.request.stops[-1].count == 47 == found.params.max_new_tokens
    assert found.notes == ("max_new_tokens=128 shortened to the 47 tokens that fit in the context",)
    assert "max_new_tokens" not in found.origin
    found = ask({"max_length": 999})
    assert found.request.stops[-1].count == 197 and found.params.max_length == 200
    assert "max_length=999 shortened" in found.notes[0]


def test_a_models_max_length_below_the_prompt_is_not_applied(ask):
    found = ask({"max_length": 2})
    assert found.request.stops[-1].count == 128 and found.params.max_length is None
    assert found.notes == ("generation config not applied: max_length=2, the prompt has 3",)


def test_a_prompt_that_leaves_no_room_is_refused(ask):
    with pytest.raises(PromptError, match="has 3 tokens and the model's context 3: no room"):
        ask(context=3)


# --------------------------------------------------------------------------------------- stops
def test_all_stops_together(ask):
    found = ask(ends={2}, stop=["ab"], stop_token_ids=[5], max_time=9, confidence_stop=0.1,
                repetition_detection={"max_pattern_size": 3})  # fmt: skip
    assert [type(s).__name__ for s in found.request.stops] == [
        "EndTokens", "StopTokens", "StopStrings", "Repetition", "Confidence", "MaxTime", "MaxNew",
    ]  # fmt: skip
    assert found.ends == {2, 5} and found.strings is found.request.stops[2]
    neutral = ask(confidence_stop=0, repetition_detection={"max_pattern_size": 0}, stop=[])
    assert len(neutral.request.stops) == 3 and neutral.strings is None


def test_end_tokens_are_replaced_and_stop_tokens_added(ask):
    assert ask(ends={2}).request.stops[0].ids == {2}
    assert ask(ends={2}, eos_token_id=4).request.stops[0].ids == {4}
    assert ask(ends={2}, eos_token_id=4, stop_token_ids=5).ends == {4, 5}
    assert ask(ends={2}, ignore_eos=True, stop_token_ids=5).ends == {5}
    assert ask(ends={2}, include_stop_str_in_output=True).ends == frozenset()


@pytest.mark.parametrize("name", ["stop_token_ids", "eos_token_id"])
@pytest.mark.parametrize("bad", [-1, 12, 2**31, 2**63, 1.5, True, "x"])
def test_ids_outside_the_vocabulary_are_refused_by_name(ask, name, bad):
    with pytest.raises(ParameterError) as error:
        ask(**{name: [3, bad]})
    assert name in str(error.value) and str(bad) in str(error.value)
    assert error.value.name == name


def test_stop_strings_need_a_tokenizer():
    with pytest.raises(PromptError, match="stop: this model was loaded without a tokenizer"):
        resolve(Facts("t", "r", 12, 20), PROMPT, {"stop": "x"})


# -------------------------------------------------------------------------------- small things
def test_a_seed_is_drawn_and_reported(ask):
    one, other = ask(), ask()
    assert one.params.seed == one.request.seed != other.request.seed
    assert "seed" not in one.origin
    assert ask(seed=7).params.seed == ask(seed=7).request.seed == 7


def test_what_goes_into_the_request(ask):
    request = ask(logprobs=5, use_cache=False, cache_salt="x").request
    assert (request.others, request.remember, request.salt) == (5, False, "x")
    assert ask(logprobs=512).request.others == 12  # the whole vocabulary
    assert ask(logprobs=0).request.others == 0 == ask().request.others
    assert ask().request.prompt == (1, 2, 3)


@pytest.mark.parametrize(
    "given",
    [
        {"temperature": float("nan")}, {"temperature": -1}, {"top_p": 1.1}, {"top_p": "0.9"},
        {"top_k": 1.5}, {"max_new_tokens": 0}, {"n": 0}, {"n": 10**9}, {"logprobs": 10**9},
        {"logprobs": -1}, {"seed": -1}, {"seed": 2**64}, {"stop": ""}, {"max_time": 0},
        {"stop": ["x"] * 65}, {"min_p": float("inf")},
        {"temprature": 1}, {"repetition_penalty": 0}, {"best_of": 0},
    ],
    ids=repr,
)  # fmt: skip
def test_bad_parameters_are_refused_by_name(ask, given):
    with pytest.raises(ParameterError) as error:
        ask(**given)
    message = str(error.value)
    assert next(iter(given)) in message and "\n" not in message and len(message) < 300


def test_a_neutral_value_of_what_is_not_built_passes(ask):
    neutral = ask(repetition_penalty=1.0, best_of=1, echo=False, tools=[], min_tokens=None)
    assert neutral.request.rules == ask().request.rules
