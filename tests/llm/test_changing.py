"""Schedules in rules: as at each step, and refused where no number of a rule changes."""
import models_zoo as zoo
import pytest

from unspool.core.errors import ParameterError
from unspool.core.params import fields
from unspool.core.schedule import Schedule, jumps, ramp
from unspool.core.values import CHANGING
from unspool.llm.changing import APART
from unspool.llm.facts import Facts
from unspool.llm.resolve import resolve

# What calls for the rule whose number a parameter is.
WITH = {
    "smoothing_curve": {"smoothing_factor": 0.3}, "dynatemp_exponent": {"dynatemp_range": 0.4},
    "adaptive_decay": {"adaptive_target": 0.3}, "mirostat_tau": {"mirostat": 2},
    "mirostat_eta": {"mirostat": 2}, "xtc_threshold": {"xtc_probability": 0.9},
    "dry_base": {"dry_multiplier": 0.5}, "dry_allowed_length": {"dry_multiplier": 0.5}}
NAMES = [name for name, row in fields().items()
         if row.built and row.type in ("int", "float") and row.default is not None
         and row.group in CHANGING - {"other readers"}]


@pytest.fixture(scope="module")
def lm(keep, kit):
    return keep(zoo.tiny(vocab_size=64, max_position_embeddings=256), kit.letters(64))


def told(output):
    return [(t.id, t.processed_logprob) for t in output.tokens]


def values(row):
    low = max(row.range.low, 0)
    return row.default, min(3 if row.type == "int" else low + 0.4, row.range.high)


@pytest.mark.parametrize("name", NAMES)
def test_a_schedule_that_never_moves_is_the_number(lm, name):
    base = {"max_new_tokens": 8, "seed": 3, "strategy": "sample", **WITH.get(name, {})}
    for value in values(fields()[name]):
        if value == APART.get(name, (None,))[0]:
            continue
        plain = lm.generate([1, 2, 1, 2], **base, **{name: value})
        for schedule in (Schedule(((0, value),)), ramp(value, value, 5), jumps((0, value))):
            assert told(lm.generate([1, 2, 1, 2], **base, **{name: schedule})) == told(plain)


@pytest.mark.parametrize(("name", "low", "high"), [
    ("temperature", 0.3, 2.0), ("top_k", 2, 30), ("top_p", 0.2, 1.0), ("min_p", 0.9, 0.0),
    ("repetition_penalty", 1.0, 3.0), ("top_n_sigma", 0.5, 2.0),
    ("no_repeat_ngram_size", 1, 3), ("smoothing_factor", 0.0, 1.0), ("typical_p", 0.2, 0.9),
])
def test_each_step_has_its_own_number(lm, name, low, high):
    """What is written at a step is what the number of that step would have drawn there."""
    how = {"strategy": "sample", "seed": 7}
    changing = lm.generate([1, 2], max_new_tokens=6, **how, **{name: jumps((0, low), (3, high))})
    first = lm.generate([1, 2], max_new_tokens=3, **how, **{name: low})
    assert told(changing)[:3] == told(first)
    stages = lm.generate([1, 2], max_new_tokens=6, seed=7,
                         strategy=f"sample:{name}={low}@3 >> sample:{name}={high}")
    assert changing.token_ids == stages.token_ids
    ids = [t for t, _ in told(changing)]
    assert ids != lm.generate([1, 2], max_new_tokens=6, **how, **{name: low}).token_ids or (
        ids != lm.generate([1, 2], max_new_tokens=6, **how, **{name: high}).token_ids)


@pytest.fixture
def ask(kit):
    def resolved(**given):
        return resolve(Facts("tiny", "reference", 12, 200, kit.letters()), [1], given)

    return resolved


def test_the_rules_hold_the_schedule(ask):
    rules = ask(temperature="1.5..0.5/10", top_k=jumps((0, 9), (4, 3)), top_p=0.9).request.rules
    assert list(map(str, rules)) == ["temperature(1.5..0.5/10)", "top_k(9!3/4)", "top_p(0.9)"]
    two = ask(temperature="1..2/4", dynatemp_exponent="1..2/4", dynatemp_range=0.5).request.rules
    assert str(two[0]) == "dynamic_temperature(0.5..1.5/4, 1.5..2.5/4, 1..2/4)"


@pytest.mark.parametrize(("given", "name", "said"), [
    ({"temperature": "1..0/5"}, "temperature", "0 is greedy, which is another rule"),
    ({"temperature": "1!0/5"}, "temperature", "0 is greedy"),
    ({"top_h": "0.5..1/5"}, "top_h", "off"),
    ({"mirostat": "2!0/5"}, "mirostat", "off"),
    ({"mirostat": "2!1/5"}, "mirostat", "it changes which rules there are"),
    ({"dynatemp_range": "0.2..0/4"}, "dynatemp_range", "it changes which rules there are"),
    ({"temperature": "1..2/5", "dynatemp_range": "0.1..0.3/5"}, "dynatemp_range",
     "another schedule"),
], ids=str)  # fmt: skip
def test_what_no_number_of_a_rule_can_follow_is_refused(ask, given, name, said):
    with pytest.raises(ParameterError, match=said) as error:
        ask(**given)
    assert error.value.name == name


def test_greedy_notes_what_changes_nothing(ask):
    assert ask(strategy="greedy", top_p="0.9..0.5/5").notes == (
        "top_p='0.9..0.5/5' changes nothing: greedy takes the likeliest token",)
