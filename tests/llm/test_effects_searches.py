"""The effect matrix of searches and of other readers: every parameter changes a result, or is
refused where it has no use; a neutral value changes no bit."""
import dataclasses

import models_zoo as zoo
import pytest

from unspool.core.errors import ParameterError
from unspool.core.mixing import Mixing
from unspool.core.params import fields
from unspool.core.searching import Searching
from unspool.core.shaping import Shaping
from unspool.llm.searches import KINDS, OWNED

PROMPT = [1, 2, 3]


class Even:
    def log_probability(self, ids, candidates):
        return [0.0 if token % 2 == 0 else -9.0 for token in candidates]


class Model:
    """Stands for another model in a case."""


OTHER = Model()
GUIDED = {"guidance_scale": 2.0}
FEW = {"strategy": "mbr", "best_of": 6}
# name: (what is asked besides, the value that has an effect there)
CASES = {
    "best_of": ({"strategy": "mbr", "best_of": 3}, 8),
    "num_beams": ({}, 5),
    "length_penalty": ({"num_beams": 4, "logit_bias": {39: 2.5}}, -4.0),
    "length_penalty_type": ({"num_beams": 4}, "gnmt"),
    "early_stopping": ({"num_beams": 4, "logit_bias": {39: 3.0}, "length_penalty": 3.0}, True),
    "patience": ({"num_beams": 2, "logit_bias": {39: 3.0}, "length_penalty": 2.0,
                  "early_stopping": True}, 5.0),
    "num_beam_groups": ({"num_beams": 4, "n": 4}, 4),
    "diversity_penalty": ({"num_beams": 4, "num_beam_groups": 2, "n": 4,
                           "diversity_penalty": 0.0}, 9.0),
    "sibling_penalty": ({"num_beams": 4, "n": 4}, 5.0),
    "must_contain": ({"num_beams": 4}, [[30, 31]]),
    "must_contain_ordered": ({"num_beams": 6, "must_contain": [[30], [8], [20]]}, True),
    "penalty_alpha": ({}, 0.6),
    "reward": ({"best_of": 6}, lambda texts: [-len(set(t)) for t in texts]),
    "utility": (FEW, "bleu"),
    "utility_weighted": ({**FEW, "temperature": 1.5}, True),
    "answer": ({"strategy": "self_consistency", "best_of": 6}, "^(.)"),
    "search_budget": ({"strategy": "tree"}, 3),
    "search_branching": ({"strategy": "tree", "search_budget": 30}, 1),
    "gate_confidence": ({"strategy": "gated", "best_of": 6, "gate_confidence": 0.0,
                         "gate_window": 2}, 3.5),
    "gate_window": ({"strategy": "gated", "best_of": 6, "gate_confidence": 3.5}, 1),
    "do_sample": ({"num_beams": 4}, True),
    "n": ({"num_beams": 4}, 3),
    "strategy": ({}, "beam:4"),
    "seed": ({"strategy": "stochastic_beam:3"}, 99),
    "ensemble": ({}, OTHER),
    "ensemble_weights": ({"ensemble": OTHER}, [1, 9]),
    "ensemble_kind": ({"ensemble": OTHER}, "log"),
    "dola_layers": ({}, "low"),
    "contrast_alpha": ({"dola_layers": "low"}, 0.9),
    "amateur_model": ({}, OTHER),
    "contrast_weight": ({"amateur_model": OTHER}, 0.2),
    "amateur_temperature": ({"amateur_model": OTHER}, 0.3),
    "expert_model": ({"anti_expert_model": OTHER}, OTHER),
    "anti_expert_model": ({"expert_model": OTHER}, OTHER),
    "experts_alpha": ({"expert_model": OTHER, "anti_expert_model": "self"}, 0.3),
    "context_alpha": ({"context_free_prompt": [9, 8], "context_alpha": 0.0}, 2.0),
    "context_free_prompt": ({"context_alpha": 2.0, "context_free_prompt": [7]}, [9, 8]),
    "guidance_scale": ({}, 3.0),
    "negative_prompt": (GUIDED, [9, 8]),
    "attribute": ({}, Even()),
    "attribute_weight": ({"attribute": Even()}, 0.1),
    "boosts": ({}, {"e": 9.0}),
    "boost_weight": ({"boosts": {"e": 9.0}}, -1.0),
}
PAIRS = {"expert_model", "anti_expert_model"}  # each needs the other
# Without a source to attend to there is nothing to cover; with one answer nothing is returned.
ELSEWHERE = {"coverage_penalty"}
NAMES = pytest.mark.parametrize("name", CASES)


@pytest.fixture(scope="module")
def models(keep, kit):
    return [keep(zoo.tiny(vocab_size=40, max_position_embeddings=256, seed=seed), kit.letters(40),
                 ends={39}) for seed in (0, 1)]


def result(models, **given):
    """All that comes back: texts, scores, and how sure the model was."""
    named = {"self": models[0]}
    given = {k: models[1] if v is OTHER else named.get(v, v) if isinstance(v, str) else v
             for k, v in given.items()}
    out = models[0].generate(PROMPT, **{"max_new_tokens": 8, "seed": 4, **given})
    return [(c.token_ids, c.score, [(t.logprob, t.processed_logprob) for t in c.tokens])
            for c in out]


def test_no_parameter_is_forgotten():
    shaping = {f.name for f in dataclasses.fields(Shaping)}
    built = {f.name for kind in (Searching, Mixing) for f in dataclasses.fields(kind)
             if fields()[f.name].built and f.name not in shaping}
    assert set(CASES) == built - ELSEWHERE


@NAMES
def test_it_changes_a_result(models, name):
    base, value = CASES[name]
    if name in PAIRS:
        with pytest.raises(ParameterError, match="expert"):
            result(models, **base)
        base = {**base, name: "self"}
    assert result(models, **{**base, name: value}) != result(models, **base)


@NAMES
def test_a_neutral_value_changes_no_bit(models, name):
    base, _ = CASES[name]
    if name in PAIRS or name == "seed":
        return  # each stands beside another; a seed that is not given is a new one
    unset = {k: v for k, v in base.items() if k != name}
    default = fields()[name].default
    for value in (None, *fields()[name].neutral):
        if name in base and value != default:
            continue
        want = unset if name not in base or value is None else {**unset, name: default}
        try:
            plain = result(models, **want)
        except ParameterError:
            continue  # it is what the strategy is about
        assert result(models, **{**want, name: value}) == plain


@pytest.mark.parametrize("name", [n for n in CASES if n not in (
    "n", "seed", "strategy", "do_sample")])
def test_alone_it_asks_for_its_search_or_is_refused_and_never_passed_over(models, name):
    value = CASES[name][1]
    try:
        found = result(models, **{name: value})
    except ParameterError as error:
        assert error.name in (name, "context_free_prompt")
        assert "leave it out" in str(error) or "needs" in str(error) or "give" in str(error)
    else:
        assert found != result(models)


NEEDS = {"gated": {"gate_confidence": 1.0}, "lexical_beam": {"must_contain": [[30]]}}


@pytest.mark.parametrize("name", OWNED)
@pytest.mark.parametrize("strategy", ["greedy", "sample", *KINDS])
def test_a_strategy_without_a_use_for_it_says_so(models, strategy, name):
    value = 4 if name == "num_beams" else CASES[name][1] if name in CASES else 0.5
    takes = KINDS[strategy].takes if strategy in KINDS else ()
    asked = {**NEEDS.get(strategy, {}), "strategy": strategy, name: value}
    if name in takes and name not in ELSEWHERE:
        beside = {"num_beams": 4} if name == "num_beam_groups" else {}
        assert models[0].explain(PROMPT, **beside, **asked).strategy
        return
    with pytest.raises(ParameterError, match=f"{name}=") as error:
        models[0].explain(PROMPT, **asked)
    assert error.value.name in (name, "strategy")  # where two contradict, both are named


# ── other programs' spellings ────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(("theirs", "ours"), [
    ({"num_beams": 4, "do_sample": True}, {"strategy": "beam_sample:4"}),
    ({"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 0.7},
     {"strategy": "diverse_beam:4,groups=2,diversity_penalty=0.7"}),
    ({"penalty_alpha": 0.6, "top_k": 4}, {"strategy": "contrastive:0.6,k=4"}),
    ({"force_words_ids": [[30, 31], [[8], [9]]], "num_beams": 3},
     {"must_contain": [[30, 31], [[8], [9]]], "num_beams": 3}),
    ({"num_return_sequences": 3, "num_beams": 3}, {"strategy": "beam:3", "n": 3}),
    ({"beam_width": 3, "length_penalty": 0.5}, {"strategy": "beam:3,length_penalty=.5"}),
    ({"guidance_scale": 1.5}, {"strategy": "greedy:guidance_scale=1.5"}),
    ({"best_of": 4, "n": 2}, {"strategy": "best_of:4,n=2"}),
    ({"dola_layers": "high", "repetition_penalty": 1.2},
     {"strategy": "greedy:dola_layers=high,repetition_penalty=1.2"}),
])  # fmt: skip
def test_spellings_of_transformers(models, theirs, ours):
    assert result(models, **theirs) == result(models, **ours)


def test_what_a_search_takes_is_told_and_asks_for_the_same_again(models):
    lm = models[0]
    for strategy in ("mbr:4", "tree:30", "contrastive", "cot:3", "stochastic_beam:3", "gated:1.5",
                     "self_consistency", "best_of:3,n=2", "diverse_beam", "sibling_beam:3",
                     "beam_sample:3", "lexical_beam:e", "beam:5..2/4", "beam:3@2 >> mbr:2"):
        first = lm.generate(PROMPT, strategy=strategy, seed=1, max_new_tokens=5)
        again = lm.generate(PROMPT, **first.params)
        assert [c.token_ids for c in again] == [c.token_ids for c in first]
        assert [c.score for c in again] == [c.score for c in first] and again.params == first.params
    rows = {name: (value, source) for name, value, source in lm.explain(strategy="mbr").rows}
    assert rows["best_of"] == (8, "derived") and rows["strategy"] == ("mbr", "user")
    rows = {name: (value, source) for name, value, source in lm.explain(penalty_alpha=0.5).rows}
    assert rows["top_k"] == (4, "derived") and rows["penalty_alpha"] == (0.5, "user")


def test_a_generation_config_may_draw_beams(make, kit):
    model = zoo.tiny(vocab_size=40, max_position_embeddings=256)
    lm = make(model, kit.letters(40), defaults={"num_beams": 4, "do_sample": True,
                                                "temperature": 0.5})
    found = lm.explain(PROMPT)
    assert found.strategy.startswith("BeamSample(") and found.order == ("temperature(0.5)",)
    assert lm.explain(PROMPT, num_beams=3).strategy.startswith("Beam(")
    assert lm.explain(PROMPT, temperature=0.9).strategy.startswith("Sample(")


def test_a_dialect_that_is_greedy_by_itself_draws_where_texts_are_compared(models):
    lm = models[0]
    for strategy in ("mbr:3", "beam_sample:3", "stochastic_beam:3"):
        assert "temperature" not in str(lm.explain(strategy=strategy, order="mlx").order)
