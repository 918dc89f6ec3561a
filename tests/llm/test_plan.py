import pytest

import unspool
from unspool.core.errors import ParameterError
from unspool.core.params import Params
from unspool.core.plan import Plan
from unspool.llm.grammar import parse
from unspool.llm.plan import beam, greedy, sample
from unspool.llm.resolve import named


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("greedy", greedy()),
        ("beam", Plan("beam")),
        ("beam:", Plan("beam")),
        ("beam:5", Plan("beam", (("num_beams", 5),))),
        ("beam:width=3,early_stopping=never", Plan(
            "beam", (("num_beams", 3), ("early_stopping", "never")))),
        (" beam : 4 , length_penalty = -1.5 ", Plan(
            "beam", (("num_beams", 4), ("length_penalty", -1.5)))),
        ("sample", Plan("sample")),
        ("sample:t=.8,top_p=.95", sample(temperature=0.8, top_p=0.95)),
        ("sample:0.8", sample(temperature=0.8)),
        ("top_p:0.9", sample(top_p=0.9)),
        ("top_k:40,t=2", sample(top_k=40, temperature=2)),
        ("min_p:.1", sample(min_p=0.1)),
        ("temperature:0", sample(temperature=0)),
        ("typical_p:0.9", sample(typical_p=0.9)),
        ("mirostat:2", sample(mirostat=2)),
        ("mirostat:2,mirostat_tau=3", sample(mirostat=2, mirostat_tau=3)),
        ("xtc:.5", sample(xtc_probability=0.5)),
        ("dynatemp:.3", sample(dynatemp_range=0.3)),
        ("adaptive:.3", sample(adaptive_target=0.3)),
        ("top_n_sigma:1", sample(top_n_sigma=1)),
        ("eta_cutoff:.001,top_k=9", sample(eta_cutoff=0.001, top_k=9)),
        ("sample:t=.8,xtc_probability=.5", sample(temperature=0.8, xtc_probability=0.5)),
        ("greedy:repetition_penalty=1.3", Plan("greedy", (("repetition_penalty", 1.3),))),
        ("beam:3,no_repeat_ngram_size=2", Plan(
            "beam", (("num_beams", 3), ("no_repeat_ngram_size", 2)))),
        ("beam:early_stopping=True", Plan("beam", (("early_stopping", True),))),
    ],
)  # fmt: skip
def test_strategies_by_name(text, plan):
    assert parse(text) == plan
    assert named({"strategy": text}) == named({"strategy": plan})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no strategy ''"),
        ("beem", "there is no strategy 'beem'; did you mean beam? (at character 1)"),
        ("Beam", "there is no strategy 'Beam'"),
        ("beam:--5", "'--5' is not a number"),
        ("beam:5,6", "'6' is no setting of its own"),
        ("beam:5,width=6", "'width=6' is no setting of its own"),
        ("beam:width=", "'width=' is no setting of its own"),
        ("beam:5,", "'' is no setting of its own"),
        ("greedy:5", "'5' is no setting of its own"),
        ("top_p", "top_p needs a value, as in 'top_p:0.9'"),
        ("min_p:t=1", "min_p needs a value"),
    ],
)
def test_strategies_that_are_misspelt(text, said):
    with pytest.raises(ParameterError) as error:
        parse(text)
    assert said in str(error.value) and f"strategy={text!r}" in str(error.value)
    assert error.value.name == "strategy"


@pytest.mark.parametrize("text", ["top_p:1.5", "beam:0", "beam:-1", "beam:x", "sample:t=nan",
                                  "sample:colour=3"])
def test_the_values_are_checked_like_any_parameter(text):
    with pytest.raises(ParameterError):
        named({"strategy": text})


def test_plans_hold_what_was_given():
    assert beam() == Plan("beam", (("num_beams", 5),))
    assert beam(3, length_penalty=0.0, early_stopping=False) == Plan(
        "beam", (("num_beams", 3), ("length_penalty", 0.0), ("early_stopping", False)))  # fmt: skip
    assert sample(temperature=None) == Plan("sample")
    assert str(sample(top_p=0.9)) == "sample:top_p=0.9"
    assert (unspool.beam, unspool.sample, unspool.greedy) == (beam, sample, greedy)


def test_a_plan_and_the_request_must_agree():
    assert named({"strategy": beam(4), "num_beams": 4}).num_beams == 4
    assert named({"strategy": beam(4), "seed": 3}) == Params(strategy="beam", num_beams=4, seed=3)
    with pytest.raises(ParameterError, match="num_beams=3 with strategy=beam"):
        named({"strategy": beam(4), "num_beams": 3})
    with pytest.raises(ParameterError, match="two spellings of num_beams must agree"):
        named({"strategy": beam(4), "beam_width": 3})
    with pytest.raises(ParameterError, match=r"temperature=1\.0 with strategy=sample"):
        named({"strategy": "sample:t=.5", "temperature": 1.0})
