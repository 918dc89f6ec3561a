"""Programs: what a stage is made of, and that the next one goes on where the last one was."""
from itertools import pairwise

import models_zoo as zoo
import pytest

import unspool
from unspool.core.errors import ParameterError
from unspool.core.schedule import ramp
from unspool.llm.facts import Facts
from unspool.llm.resolve import resolve
from unspool.strategies import MBR, Beam, Sample

LONG = 14


@pytest.fixture
def ask(kit):
    def resolved(strategy, ends=(), defaults=None, **given):
        facts = Facts("tiny", "reference", 12, 200, kit.letters(), frozenset(ends), defaults or {})
        return resolve(facts, [1, 2, 3], {"strategy": strategy, **given})

    return resolved


def shapes(resolved):
    """The rules in force in each stage."""
    request = resolved.request
    return [[str(request.rules[i]) for i in stage.rules] for stage in request.program]


# ── what the stages are ──────────────────────────────────────────────────────────────────────────
def test_a_stage_has_its_own_parameters_over_those_of_the_request(ask):
    found = ask("beam:3@4 >> sample:t=.5,top_p=.9@6 >> greedy", top_k=5, repetition_penalty=1.2)
    assert shapes(found) == [
        ["repetition_penalty(1.2)", "top_k(5)"],
        ["repetition_penalty(1.2)", "temperature(0.5)", "top_k(5)", "top_p(0.9)"],
        ["repetition_penalty(1.2)", "greedy()"]]
    assert [str(rule) for rule in found.request.rules].count("repetition_penalty(1.2)") == 1
    assert [type(stage.strategy) for stage in found.request.program] == [Beam, Sample, Sample]
    assert shapes(ask("sample:t=.5@4 >> sample", temperature=0.9)) == [
        ["temperature(0.5)"], ["temperature(0.9)"]]


def test_the_model_s_own_values_count_in_a_stage_that_draws(ask):
    found = ask("beam:3@4 >> sample@6 >> greedy", defaults={"temperature": 0.6, "do_sample": True})
    assert shapes(found) == [[], ["temperature(0.6)"], ["greedy()"]]
    assert any("temperature=0.6" in note for note in found.notes)


def test_n_is_of_the_last_stage_and_says_how_many_texts_it_takes_over(ask):
    found = ask("beam:3@4 >> sample", n=2)
    assert [stage.takes for stage in found.request.program] == [1, 2]
    assert found.request.program[0].strategy.n == 2 == found.request.program[1].strategy.n
    found = ask("mbr:4@4 >> beam:3,n=3@9 >> sample")
    assert [stage.takes for stage in found.request.program] == [1, 3, 1]
    assert [stage.strategy.n for stage in found.request.program] == [3, 3, 1]
    assert isinstance(found.request.program[0].strategy, MBR)
    assert ask("beam:2@4 >> sample", n=5).request.program[0].strategy.n == 2
    assert ask("beam:2@4 >> beam:4,n=3").params.n == 3
    with pytest.raises(ParameterError, match="n=3 with num_beams=2"):
        ask("sample@4 >> beam:2", n=3)


def test_a_search_of_a_stage_looks_as_far_as_its_end(ask):
    stages = ask("beam:3@4 >> beam:3@step=9 >> beam:3@text=z >> beam", max_new_tokens=30
                 ).request.program
    assert [stage.strategy.longest for stage in stages] == [4, 9, 30, 30]
    assert ask("beam:3@40 >> beam:3", max_new_tokens=30).request.program[0].strategy.longest == 30


def test_a_stage_may_end_by_more_than_one_thing(ask):
    request = ask("greedy@5,entropy>2,entropy>3 >> sample").request
    assert request.program[0].entropy_above == 2 and request.program[1].entropy_above is None
    assert [type(stop).__name__ for stop in request.stops[:1]] == ["EndOfStage"]


def test_a_plan_with_an_end_is_a_program_of_one_stage(ask):
    found = ask(unspool.beam(3).for_tokens(5))
    assert len(found.request.program) == 1 and found.request.stops[0].last


@pytest.mark.parametrize("strategy", ["beam:3@4 >> sample:t=.8", unspool.beam(3).for_tokens(4)
                                      >> unspool.sample(temperature=ramp(1.2, 0.5, 9))], ids=str)
def test_the_parameters_of_a_result_ask_for_the_same_again(ask, strategy):
    first = ask(strategy, n=2, repetition_penalty=1.3)
    again = ask(**first.params.to_json())
    assert again.request.program == first.request.program
    assert again.request.rules == first.request.rules and again.params == first.params


@pytest.mark.parametrize(("strategy", "given", "name", "said"), [
    ("beam:3@4 >> sample", {"temperature": 0}, "temperature", "temperature=0 with num_beams=3"),
    ("mbr@4 >> sample", {"temperature": 0}, "temperature", "mbr needs several"),
    ("beam@4 >> sample", {"do_sample": True}, "do_sample", "says itself where it samples"),
    ("beam@4 >> sample", {"best_of": 3}, "best_of", "no stage has a use for it"),
    ("sample@4 >> greedy", {"num_beams": 3}, "num_beams", "no stage has a use for it"),
    ("sample@4 >> greedy", {"negative_prompt": [5]}, "negative_prompt", "no stage asks for what"),
    ("sample:boost_weight=2@4 >> greedy", {}, "boost_weight", "it belongs to boosts"),
    ("beam:3@4 >> sample:penalty_alpha=.5", {}, "penalty_alpha", "sample has no use for it"),
    ("beam:0@4 >> sample", {}, "num_beams", "num_beams=0: must be"),
    ("beam@4 >> sample:top_p=2", {}, "top_p", "top_p=2: must be"),
    ("beam@4 >> sample:seed=3", {}, "seed", "seed=3"),
    ("beam@4 >> sample:max_new_tokens=3", {}, "max_new_tokens", "max_new_tokens=3"),
    ("beam@4 >> sample:stop=x", {}, "stop", "stop=('x',) in sample:stop=x: it holds for the whole"),
    ("greedy@regex='(' >> sample", {}, "strategy", "is no regular expression"),
    ("greedy@3 >> sample@entropy>3", {}, "strategy", "the last stage ends the text"),
    ("beam >> sample", {}, "strategy", "stage 1, beam, never ends"),
])
def test_what_cannot_be_is_refused_by_name(ask, strategy, given, name, said):
    with pytest.raises(ParameterError) as error:
        ask(strategy, **given)
    assert said in str(error.value) and error.value.name == name


# ── what they do ─────────────────────────────────────────────────────────────────────────────────
@pytest.fixture
def lm(make, kit):
    return make(zoo.tiny(vocab_size=64, max_position_embeddings=256), kit.letters(64), ends={20})


def told(output):
    return [[(t.id, t.logprob, t.processed_logprob) for t in c.tokens] for c in output]


@pytest.mark.parametrize("given", [
    {}, {"repetition_penalty": 1.3}, {"no_repeat_ngram_size": 2}, {"length_penalty": 0.0},
    {"early_stopping": True}, {"early_stopping": "never", "length_penalty": 2.0},
    {"choice": [[3, 1, 4, 1, 5, 9, 2, 6], [3, 1, 4], [2, 7, 1, 8, 2, 8, 1, 8]]},
    {"guidance_scale": 1.5, "negative_prompt": [5]}, {"logit_bias": {20: 4.0}},
    {"ignore_eos": True},
    {"must_contain": [[9], [11, 12]]}, {"num_beam_groups": 2, "num_beams": 4},
    {"boosts": [[9, 2.0]]},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("prompt", [[1, 2, 3], [9, 60], [33]], ids=str)
def test_the_first_tokens_are_those_of_the_search_alone(lm, prompt, given):
    name = ("lexical_beam" if "must_contain" in given else
            "diverse_beam" if "num_beam_groups" in given else "beam")
    width = "" if "num_beams" in given else ":width=5"
    alone = lm.generate(prompt, strategy=name + width, max_new_tokens=6, **given)
    both = lm.generate(prompt, strategy=f"{name}{width}@6 >> sample", max_new_tokens=LONG, seed=3,
                       **given)
    assert told(both)[0][:len(alone.tokens)] == told(alone)[0]
    if alone.finish_reason != "length":  # it had really ended
        assert both.token_ids == alone.token_ids and both.finish_reason == alone.finish_reason
    else:
        assert len(both.tokens) > 6 or both.finish_reason == "stop"


def test_the_next_stage_draws_as_sampling_would_have_gone_on(lm):
    """Its noise is that of the place, so the same text goes on in the same way."""
    both = lm.generate([1, 2], strategy="greedy@4 >> sample:t=1.3", seed=5, max_new_tokens=9)
    rest = lm.generate([1, 2, *both.token_ids[:4]], strategy="sample:t=1.3", seed=5,
                       max_new_tokens=5)
    assert both.token_ids[4:] == rest.token_ids


@pytest.mark.parametrize("strategy", [
    "beam:4@5 >> sample", "sample@3 >> beam:3@4 >> greedy", "contrastive@4 >> beam:3",
    "tree:20@4 >> sample", "mbr:3@4 >> cot:2", "stochastic_beam:3@4 >> sibling_beam:3",
    "diverse_beam:4@3 >> beam:2", "greedy@3 >> beam:3..1/6", "beam_sample:3@5 >> contrastive",
])
def test_scores_add_up_over_all_stages(lm, strategy):
    out = lm.generate([1, 2, 3], strategy=strategy, max_new_tokens=10, seed=2, ignore_eos=True)
    assert len(out.tokens) == 10
    judged = lm.score(out.token_ids, given=[1, 2, 3])
    assert out.logprob == pytest.approx(judged.logprob, abs=1e-9)
    assert [t.logprob for t in out.tokens] == pytest.approx(
        [t.logprob for t in judged.tokens], abs=1e-9)


def test_the_score_of_a_search_at_the_end_counts_what_was_written_before(lm):
    out = lm.generate([1, 2, 3], strategy="greedy@4 >> beam:3,length_penalty=0", max_new_tokens=9,
                      ignore_eos=True)
    assert out.score == pytest.approx(sum(t.processed_logprob for t in out.tokens), abs=1e-9)


@pytest.mark.parametrize("rule", [{"no_repeat_ngram_size": 2}, {"repetition_penalty": 1.7},
                                  {"mirostat": 2, "mirostat_tau": 2.0},
                                  {"dry_multiplier": 2.0, "dry_allowed_length": 1}], ids=str)
def test_what_a_rule_remembers_goes_over(lm, rule):
    """A border between two equal stages changes nothing."""
    how = {"max_new_tokens": 30, "seed": 4, "ignore_eos": True, **rule}
    plain = lm.generate([1, 2, 1], strategy="sample", **how)
    parted = lm.generate([1, 2, 1], strategy="sample@7 >> sample@step=15 >> sample", **how)
    assert told(parted) == told(plain)


def test_no_pair_is_repeated_across_the_border(lm):
    out = lm.generate([1, 2], strategy="beam:3@6 >> greedy", no_repeat_ngram_size=2,
                      max_new_tokens=40, ignore_eos=True)
    text = [1, 2, *out.token_ids]
    pairs = list(pairwise(text))
    assert len(set(pairs)) == len(pairs)


def test_a_choice_is_one_whatever_stage_writes_it(lm):
    choices = [[3, 1, 4, 1, 5], [2, 7, 1, 8]]
    for strategy in ("beam:2@2 >> sample", "sample@1 >> beam:2", "greedy@3 >> cot:2"):
        out = lm.generate([9], strategy=strategy, choice=choices, seed=1, ignore_eos=True)
        assert out.token_ids in choices and out.finish_reason == "stop"


def test_what_is_dropped_says_why(lm):
    out = lm.generate([1, 2], strategy="beam:3,n=3@4 >> sample", max_new_tokens=6, seed=1,
                      ignore_eos=True)
    reasons = [record.reason for record in out.trace if record.edit == "drop"]
    assert reasons.count("rank below 1 at the end of stage 1") == 2
    assert reasons.count("goes on in stage 2") == 1


def test_the_best_texts_are_taken_over_in_order(lm):
    alone = lm.generate([1, 2], strategy="beam:3", n=3, max_new_tokens=4, ignore_eos=True)
    both = lm.generate([1, 2], strategy="beam:3@4 >> sample", n=3, max_new_tokens=8, seed=1,
                       ignore_eos=True)
    assert [c.token_ids[:4] for c in both] == [c.token_ids for c in alone]


@pytest.mark.parametrize(("end", "count"), [
    ("text=i", None), ("regex='[g-k]'", None), ("step=4", 4), ("5", 5), ("text=☃,6", 6),
])
def test_where_a_stage_ends(make, kit, end, count):
    lm = make(zoo.markov(zoo.cycle(26)), kit.letters(26))
    how = {"max_new_tokens": 12, "seed": 1}
    out = lm.generate("a", strategy=f"greedy@{end} >> sample:logit_bias='{{\"b\": 50}}'", **how)
    place = count or (out.text.index("i" if "text" in end else "g") + 1)
    assert out.text == "bcdefghijklm"[:place] + "b" * (12 - place)


def test_a_stage_ends_where_the_model_is_unsure(make, kit):
    table = 5 * zoo.cycle(6)
    table[3] = 0.0  # behind "d" everything is as likely
    lm = make(zoo.markov(table), kit.letters(6))
    out = lm.generate("a", strategy="greedy@entropy>1 >> sample:logit_bias='{\"f\": 99}'",
                      max_new_tokens=6, seed=1)
    assert out.text == "bcdfff"
    assert lm.generate("a", strategy="greedy@entropy>3 >> sample", max_new_tokens=3).text == "bcd"


def test_the_last_stage_s_end_ends_the_text(make, kit):
    lm = make(zoo.markov(zoo.cycle(12)), kit.letters(12))
    out = lm.generate("a", strategy="greedy@2 >> greedy@text=f")
    assert (out.text, out.finish_reason, out.stop_reason) == ("bcdef", "stop", "f")
    out = lm.generate("a", strategy="greedy@2 >> greedy@3")
    assert (out.text, out.finish_reason, out.stop_reason) == ("bcdef", "length", "tokens")


def test_joined_commits_are_the_text(lm):
    for strategy in ("beam:3@4 >> sample", "sample@3 >> beam:3", "beam:3@3 >> mbr:3",
                     "contrastive@4 >> tree:9"):
        events = list(lm.stream([1, 2], strategy=strategy, max_new_tokens=8, seed=1))
        out = events[-1].output
        committed = [t.id for e in events if e.type == "commit" and e.choice == 0 for t in e.tokens]
        assert committed == out.token_ids


def test_a_batch_of_programs_gives_what_each_gives_alone(lm):
    asked = [{"prompt": [1, 2], "strategy": s, "seed": 3, "max_new_tokens": 8}
             for s in ("beam:3@4 >> sample", "greedy@2 >> beam:2", "sample", "mbr:3@3 >> greedy")]
    for together, alone in zip(lm.generate(asked), map(lm.generate, asked), strict=True):
        assert together.token_ids == alone.token_ids
        assert together.score == pytest.approx(alone.score, abs=1e-9)


def test_a_strategy_of_one_s_own_is_a_stage_too(lm):
    mine = unspool.own(Sample()).for_tokens(3) >> unspool.greedy()
    out = lm.generate([1, 2], strategy=mine, seed=3, max_new_tokens=6)
    same = lm.generate([1, 2], strategy="sample@3 >> greedy", seed=3, max_new_tokens=6)
    assert told(out) == told(same)
    with pytest.raises(ParameterError, match="no strategy"):
        unspool.own(3)


@pytest.mark.parametrize("given", [
    {}, {"repetition_penalty": 1.2}, {"choice": [" blue", " a deep blue, as everyone can see"]},
    {"guidance_scale": 1.5, "negative_prompt": "The color of grass is"}, {"stop": "."},
], ids=str)  # fmt: skip
def test_the_law_of_the_first_tokens_on_the_default_model(smol, given):
    """Bit for bit; and the score of the whole is the teacher-forced one."""
    prompt, how = "The color of sky is", {"seed": 1, **given}
    alone = smol.generate(prompt, strategy="beam:5", max_new_tokens=20, **how)
    both = smol.generate(prompt, strategy="beam:5@20 >> sample:t=.8,top_p=.95",
                         max_new_tokens=26, **how)
    assert told(both)[0][:len(alone.tokens)] == told(alone)[0]
    if "guidance_scale" not in given:
        assert both.logprob == smol.score(both.token_ids, given=prompt).logprob
