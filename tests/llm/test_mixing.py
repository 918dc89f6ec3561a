"""From parameters to mixes: what each one changes, worked out from the rows, and every refusal."""
import math

import models_zoo as zoo
import numpy as np
import pytest

from unspool.core.errors import ParameterError
from unspool.mixes import buckets

PROMPT = [1, 2, 3]
OTHER = [5, 9]


@pytest.fixture(scope="module")
def models(keep, kit):
    """A model, one with other weights, and one with others still, of one vocabulary."""
    return [keep(zoo.tiny(vocab_size=40, max_position_embeddings=128, seed=seed), kit.letters(40),
                 ends={39}) for seed in (0, 1, 2)]


@pytest.fixture
def lm(models):
    return models[0]


def logits(lm, prompt, written=()):
    return np.log(probabilities(lm, prompt, written))


def probabilities(lm, prompt, written=()):
    """[V], by the model alone."""
    found = lm.next([*prompt, *written])
    return np.array([found.prob(i) for i in range(lm.facts.vocab)])


def normal(row):
    row = np.asarray(row, float)
    top = row[np.isfinite(row)].max()
    return row - top - math.log(np.exp(row - top).sum())


def mixed(lm, **given):
    """The log-probabilities of what may come next, and of what follows the likeliest token."""
    out = lm.generate(PROMPT, max_new_tokens=3, logprobs=lm.facts.vocab, strategy="greedy", **given)
    rows = []
    for token in out.tokens:
        row = np.full(lm.facts.vocab, -math.inf)
        for ranked in token.top:
            row[ranked.id] = ranked.logprob
        rows.append(row)
    return out.token_ids, rows


def check(lm, given, row_of):
    """Each row of a text is what `row_of(written)` says."""
    ids, rows = mixed(lm, **given)
    plain = mixed(lm)[1]
    assert not np.allclose(rows[0], plain[0], atol=1e-3)
    for i, row in enumerate(rows):
        np.testing.assert_allclose(row, normal(row_of(ids[:i])), rtol=0, atol=1e-6)


def test_guidance(lm):
    for scale in (0.0, 2.0, -1.5):
        check(lm, {"guidance_scale": scale, "negative_prompt": OTHER}, lambda w, scale=scale: (
            scale * logits(lm, PROMPT, w) + (1 - scale) * logits(lm, OTHER, w)))
    check(lm, {"guidance_scale": 1.7}, lambda w: (
        1.7 * logits(lm, PROMPT, w) - 0.7 * logits(lm, PROMPT[-1:], w)))
    text = {"guidance_scale": 2.0, "negative_prompt": "fj"}
    assert mixed(lm, **text)[0] == mixed(lm, guidance_scale=2.0, negative_prompt=OTHER)[0]


def test_context(lm):
    check(lm, {"context_alpha": 0.5, "context_free_prompt": OTHER}, lambda w: (
        1.5 * logits(lm, PROMPT, w) - 0.5 * logits(lm, OTHER, w)))


def test_an_amateur(models):
    lm, other, _ = models

    def row(w, cut=0.1, weight=1.0, t=1.0):
        p = probabilities(lm, PROMPT, w)
        out = np.log(p) - weight * normal(logits(other, PROMPT, w) / t)
        return np.where(p >= cut * p.max(), out, -math.inf)

    check(lm, {"amateur_model": other}, row)
    check(lm, {"amateur_model": other, "contrast_alpha": 0.4, "contrast_weight": 0.3,
               "amateur_temperature": 0.5}, lambda w: row(w, 0.4, 0.3, 0.5))


def test_experts(models):
    lm, one, two = models
    ids, rows = mixed(lm, expert_model=one, anti_expert_model=two, experts_alpha=1.5)
    for i, row in enumerate(rows):
        p = probabilities(lm, PROMPT, ids[:i])
        order = np.argsort(-p)
        kept = order[:int((np.cumsum(p[order]) < 0.9).sum()) + 1]
        want = np.full(len(p), -math.inf)
        want[kept] = (np.log(p) + 1.5 * (logits(one, PROMPT, ids[:i])
                                         - logits(two, PROMPT, ids[:i])))[kept]
        np.testing.assert_allclose(row, normal(want), rtol=0, atol=1e-6)
    plain = mixed(lm, expert_model=one, anti_expert_model=two)[1][0]
    assert not np.allclose(plain, rows[0])  # 2 is the default


@pytest.mark.parametrize("weights", [None, [1, 3, 0.5]])
def test_ensembles(models, weights):
    lm, *others = models
    w = np.array(weights or [1.0, 1.0, 1.0])
    w = w / w.sum()
    given = {"ensemble": others} | ({} if weights is None else {"ensemble_weights": weights})
    check(lm, given, lambda t: np.log(sum(
        x * probabilities(m, PROMPT, t) for x, m in zip(w, models, strict=True))))
    check(lm, {**given, "ensemble_kind": "log"}, lambda t: sum(
        x * logits(m, PROMPT, t) for x, m in zip(w, models, strict=True)))
    assert mixed(lm, ensemble=others[0]) [0] == mixed(lm, ensemble=[others[0]])[0]


def test_inner_layers(lm):
    low, high = mixed(lm, dola_layers="low"), mixed(lm, dola_layers=[1])
    plain = mixed(lm)
    assert not np.allclose(low[1][0], plain[1][0]) and not np.allclose(high[1][0], plain[1][0])
    assert buckets(lm.facts.layers, False, [1]) == (1,)
    assert (low[1][0] == -math.inf).sum() < (mixed(
        lm, dola_layers="low", contrast_alpha=0.9)[1][0] == -math.inf).sum()


class Even:
    """A classifier that likes even ids."""

    def log_probability(self, ids, candidates):
        return [0.0 if token % 2 == 0 else -2.0 for token in candidates]


def test_an_attribute(lm):
    liked = np.array([0.0 if i % 2 == 0 else -2.0 for i in range(40)])
    check(lm, {"attribute": Even()}, lambda w: logits(lm, PROMPT, w) + liked)
    check(lm, {"attribute": Even(), "attribute_weight": 3.0},
          lambda w: logits(lm, PROMPT, w) + 3 * liked)


@pytest.mark.parametrize("boosts", [{"e": 2.0, "xy": -1.0}, [["e", 2.0], ["xy", -1.0]],
                                    [[4, 2.0], [[23, 24], -1.0]]], ids=str)
def test_boosts(lm, boosts):
    def row(written, factor=1.0):
        out = logits(lm, PROMPT, written)
        out[4] += 2.0 * factor
        out[24 if list(written[-1:]) == [23] else 23] -= 1.0 * factor
        return out

    first = mixed(lm, boosts=boosts)[1][0]
    np.testing.assert_allclose(first, normal(row([])), rtol=0, atol=1e-6)
    first = mixed(lm, boosts=boosts, boost_weight=-2.0)[1][0]
    np.testing.assert_allclose(first, normal(row([], -2.0)), rtol=0, atol=1e-6)


def test_the_order_in_which_they_are_joined(models):
    lm, one, two = models
    asked = {"boosts": {"e": 2.0}, "attribute": Even(), "guidance_scale": 1.5,
             "context_alpha": 0.5, "context_free_prompt": OTHER, "expert_model": one,
             "anti_expert_model": two, "amateur_model": two, "dola_layers": "low",
             "ensemble": [one]}
    found = lm.explain(PROMPT, **asked).mixes
    assert [mix.split("(")[0] for mix in found] == [
        "Ensemble", "Dola", "Contrast", "Experts", "ContextAware", "Guidance", "Attribute", "Boost"]
    assert lm.generate(PROMPT, max_new_tokens=3, **asked).tokens


@pytest.mark.parametrize("given", [
    {"guidance_scale": 1.0}, {"guidance_scale": 1.0, "negative_prompt": [5]}, {"boosts": {}},
    {"context_alpha": 0.0, "context_free_prompt": [5]}, {"ensemble": []}, {"negative_prompt": ""},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("strategy", ["greedy", "beam:3", "sample"])
def test_what_asks_for_nothing_changes_no_bit(lm, strategy, given):
    how = {"strategy": strategy, "seed": 1, "max_new_tokens": 6}
    one, other = lm.generate(PROMPT, **how), lm.generate(PROMPT, **how, **given)
    assert [(t.id, t.logprob) for t in one.tokens] == [(t.id, t.logprob) for t in other.tokens]


@pytest.mark.parametrize("name", ["guidance_scale", "context_alpha"])
@pytest.mark.parametrize("strategy", ["greedy", "beam:3", "sample"])
def test_a_schedule_of_a_mix(lm, strategy, name):
    beside = {"context_free_prompt": OTHER} if name == "context_alpha" else {}
    how = {"strategy": strategy, "seed": 1, "max_new_tokens": 8, **beside}
    calm = lm.generate(PROMPT, **how, **{name: 2.5})
    assert lm.generate(PROMPT, **how, **{name: "2.5..2.5/9"}).token_ids == calm.token_ids
    jump = lm.generate(PROMPT, **how, **{name: "2.5!0.5/4"})
    parted = lm.generate(PROMPT, **{**how, **beside, "strategy": (
        f"{strategy}{',' if ':' in strategy else ':'}{name}=2.5@4 >> "
        f"{strategy}{',' if ':' in strategy else ':'}{name}=0.5")})
    if strategy != "beam:3":  # a search that goes on keeps all its beams
        assert jump.token_ids == parted.token_ids


def test_a_mix_of_one_stage_alone(lm):
    both = lm.generate(PROMPT, strategy="greedy@4 >> greedy:guidance_scale=2.5", max_new_tokens=8,
                       negative_prompt=OTHER)
    plain = lm.generate(PROMPT, strategy="greedy", max_new_tokens=8)
    guided = lm.generate([*PROMPT, *plain.token_ids[:4]], strategy="greedy", max_new_tokens=4,
                         guidance_scale=2.5, negative_prompt=[*OTHER, *plain.token_ids[:4]])
    assert both.token_ids == plain.token_ids[:4] + guided.token_ids


# ── what is refused ──────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(("given", "name", "said"), [
    ({"guidance_scale": 1e6}, "guidance_scale", "must be a number in"),
    ({"guidance_scale": 2, "negative_prompt": [999]}, "negative_prompt", "outside the vocabulary"),
    ({"guidance_scale": 2, "negative_prompt": [1] * 127}, "negative_prompt", "the context is 128"),
    ({"negative_prompt": [5]}, "negative_prompt", "belongs to guidance_scale"),
    ({"context_alpha": 0.5}, "context_alpha", "it needs context_free_prompt"),
    ({"context_free_prompt": [5]}, "context_free_prompt", "belongs to context_alpha"),
    ({"contrast_alpha": 0.5}, "contrast_alpha", "belongs to"),
    ({"contrast_weight": 2}, "contrast_weight", "belongs to amateur_model"),
    ({"amateur_temperature": 0.5}, "amateur_temperature", "belongs to amateur_model"),
    ({"experts_alpha": 1}, "experts_alpha", "belongs to expert_model"),
    ({"ensemble_weights": [1, 2]}, "ensemble_weights", "belongs to ensemble"),
    ({"ensemble_kind": "log"}, "ensemble_kind", "belongs to ensemble"),
    ({"attribute_weight": 2}, "attribute_weight", "belongs to attribute"),
    ({"boost_weight": 2}, "boost_weight", "belongs to boosts"),
    ({"attribute": len}, "attribute", "must be a classifier"),
    ({"attribute": "positive"}, "attribute", "must be a classifier"),
    ({"amateur_model": 5}, "amateur_model", "must be a loaded model, a name or a path"),
    ({"amateur_model": "no-such-model"}, "amateur_model", "no-such-model"),
    ({"ensemble": "/no/such/folder"}, "ensemble", "/no/such/folder"),
    ({"boosts": {"e": "x"}}, "boosts", "no word with a number"),
    ({"boosts": {"e": 1e9}}, "boosts", "no word with a number"),
    ({"boosts": ["e"]}, "boosts", "no word with a number"),
    ({"boosts": 5}, "boosts", "must be {word: number}"),
    ({"boosts": [[999, 1]]}, "boosts", "outside the vocabulary"),
    ({"dola_layers": "middle"}, "dola_layers", "middle"),
    ({"dola_layers": [99]}, "dola_layers", "99"),
])
def test_what_cannot_be_is_refused_by_name_before_the_first_forward(make, kit, given, name, said):
    lm = make(zoo.tiny(vocab_size=40, max_position_embeddings=128), kit.letters(40))
    with pytest.raises(ParameterError) as error:
        lm.generate(PROMPT, max_new_tokens=4, **given)
    assert error.value.name == name and said in str(error.value)
    assert lm.worker.thread is None


@pytest.mark.parametrize("given", [["expert_model"], ["anti_expert_model"]])
def test_experts_come_in_pairs(models, given):
    with pytest.raises(ParameterError, match="expert"):
        models[0].generate(PROMPT, **dict.fromkeys(given, models[1]))


@pytest.mark.parametrize(("weights", "said"), [
    ([1], "must be 2 numbers"), ([1, 2, 3], "must be 2 numbers"), ("x", "must be 2 numbers"),
    ([1, -1], "ensemble_weights"), ([0, 0], "ensemble_weights"), ([1, "x"], "ensemble_weights"),
])
def test_weights_are_as_many_as_models(models, weights, said):
    with pytest.raises(ParameterError, match=said) as error:
        models[0].generate(PROMPT, ensemble=[models[1]], ensemble_weights=weights)
    assert error.value.name == "ensemble_weights"


@pytest.mark.parametrize("name", ["amateur_model", "expert_model", "anti_expert_model", "ensemble"])
def test_readers_of_different_vocabularies(make, kit, name):
    lm = make(zoo.tiny(vocab_size=40, max_position_embeddings=128), kit.letters(40))
    fewer = make(zoo.tiny(vocab_size=39, max_position_embeddings=128), kit.letters(39))
    others = make(zoo.tiny(vocab_size=40, max_position_embeddings=128), kit.letters(39, ("zz",)))
    short = make(zoo.tiny(vocab_size=40, max_position_embeddings=6), kit.letters(40))
    beside = {"expert_model": lm, "anti_expert_model": lm} if "expert" in name else {}
    for other, said in ((fewer, "it has 39 tokens and tiny 40; models that are joined must have "
                                "one vocabulary"), (others, "its token 39 is 'zz'"),
                        (short, "the context is 6")):
        with pytest.raises(ParameterError, match=said) as error:
            lm.generate(PROMPT, max_new_tokens=9, **{**beside, name: other})
        assert error.value.name == name and lm.worker.thread is None


def test_a_model_that_a_path_names_is_loaded_once_and_closed(folder, make):
    from unspool.llm.load import load

    place = folder()
    with load(place, numerics="reference") as lm:
        how = {"max_new_tokens": 3}
        first = lm.generate("a", amateur_model=place, **how)
        assert first.token_ids == lm.generate("a", amateur_model=str(place), **how).token_ids
        [loaded] = lm.partners.loaded.values()
        assert loaded.numerics == "reference"
    assert loaded.worker.closed
