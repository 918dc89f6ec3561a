"""The record of a token: true to the text it belongs to, the noise and all, and kept if asked."""

import json
import math
from pathlib import Path

import engine_zoo
import models_zoo as zoo
import numpy as np
import pytest

from unspool.core.errors import ParameterError
from unspool.core.request import Request
from unspool.kernels.reading import philox
from unspool.llm.why import Why
from unspool.rules import greedy, temperature, top_k
from unspool.stops.length import MaxNew
from unspool.strategies import Force, Sample

SKY = "The color of sky is"
PARAMS = [
    {"temperature": 1.2, "top_k": 30, "top_p": 0.9, "seed": 3},
    {"temperature": 0.8, "top_p": 0.9, "seed": 2**64 - 1, "n": 3},
    {"strategy": "greedy"},
    {"strategy": "beam:3", "n": 2},
    {"strategy": Force(tuple(b"world"))},
    {"do_sample": True, "seed": 0},
]


@pytest.mark.parametrize("params", PARAMS, ids=repr)
def test_a_record_tells_of_its_own_token(wide, params):
    asked = {"max_new_tokens": 5, **params}
    out = wide.generate("Hello", why=True, **asked)
    if "seed" in params:
        plain = wide.generate("Hello", **asked)
        assert [c.token_ids for c in plain] == [c.token_ids for c in out]
    for choice in out:
        assert len(choice.whys) == len(choice.tokens) == 5
        for position, token in enumerate(choice.tokens):
            why = choice.why(position)
            assert (why.position, why.id, why.text) == (position, token.id, token.text)
            assert (why.logprob, why.rank) == (token.logprob, token.rank)
            assert why.processed_logprob == token.processed_logprob
            left = why.row.shaped
            assert why.processed_logprob == left.values[left.ids == token.id] - left.norm
            assert why.row.raw[token.id] - why.row.norm == pytest.approx(token.logprob)
            total = sum(stage.raw_mass for stage in why.stages) + why.stages.raw_mass
            assert total == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("params", [p for p in PARAMS if "strategy" not in p], ids=repr)
def test_the_pick_is_replayed_bit_for_bit(wide, params):
    for choice in wide.generate("Hello", why=True, max_new_tokens=6, **params):
        for token, why in zip(choice.tokens, choice.whys, strict=True):
            assert why.replay() == (token.id, token.processed_logprob)
            assert why.how in ("drawn", "only")


@pytest.mark.parametrize("params", [p for p in PARAMS if "strategy" not in p], ids=repr)
def test_the_noise_and_the_runner_up_are_those_of_the_race(wide, params):
    ids = np.arange(256)
    prompt = len(b"Hello")
    for choice in wide.generate("Hello", why=True, max_new_tokens=6, **params):
        for why in choice.whys:
            place = (params["seed"], choice.index, prompt + why.position, 0)
            noise = philox.gumbel(*place, ids)
            assert why.noise.gumbel == pytest.approx(noise[why.id])
            assert why.noise.uniform == philox.uniform(*place, ids)[why.id]
            assert why.noise.gumbel == pytest.approx(-math.log(-math.log(why.noise.uniform)))
            assert (why.noise.seed, why.noise.choice, why.noise.position) == place[:3]
            left = why.row.shaped
            race = np.full(256, -np.inf)
            race[left.ids] = left.values - left.norm + noise[left.ids]
            first, second = np.argsort(-race)[:2]
            assert why.id == first
            if len(left.ids) > 1:
                assert why.runner_up.id == second
                assert why.runner_up.behind == pytest.approx(race[first] - race[second])
                assert why.runner_up.prob == pytest.approx(np.exp(race - noise)[second])
            else:
                assert why.runner_up is None and why.how == "only"


@pytest.mark.parametrize("params", [{}, {"top_k": 40}, {"repetition_penalty": 1.3}], ids=repr)
def test_the_race_of_the_default_model(smol, params):
    """In compiled code, over a whole row and over the few that a cut leaves."""
    out = smol.generate(SKY, temperature=0.9, seed=5, max_new_tokens=3, why=True, **params)
    for token, why in zip(out.tokens, out.first.whys, strict=True):
        left = why.row.shaped
        race = left.values - left.norm + philox.gumbel(5, 0, 5 + why.position, 0, left.ids)
        first, second = np.argsort(-race)[:2]
        assert left.ids[first] == token.id and left.ids[second] == why.runner_up.id
        assert why.runner_up.behind == pytest.approx(race[first] - race[second])
        assert why.replay() == (token.id, token.processed_logprob)


def test_ranks_before_and_after(make):
    """MK with one distribution everywhere: 0.5, 0.3, 0.15, 0.05."""
    lm = make(zoo.markov(np.tile(np.log([0.5, 0.3, 0.15, 0.05]), (4, 1))))
    out = lm.generate([0], strategy=Force((0, 1, 2, 3)), top_k=3, repetition_penalty=9.0,
                      max_new_tokens=4, why=True)
    assert [why.rank for why in out.first.whys] == [1, 2, 3, 4]
    # a token that has occurred is the last of all: log .5 * 9 < log .05
    assert [why.processed_rank for why in out.first.whys] == [None, 1, 1, 1]
    assert all(why.how == "given" for why in out.first.whys)


def test_greedy_looks_at_logits_and_not_at_noise(wide):
    out = wide.generate("Hello", why=True, max_new_tokens=4)
    for token, why in zip(out.tokens, out.first.whys, strict=True):
        [(_, first), (other, second)] = why.row.likeliest(2)
        assert why.how == "greedy" and why.runner_up.id == other
        assert why.runner_up.behind == pytest.approx(first - second)
        assert why.stages["greedy"].mass == pytest.approx(1 - token.prob)
        assert why.noise is not None and "noise" not in str(why)


def test_a_search_draws_no_noise(wide):
    why = wide.generate("Hello", why=True, num_beams=3, max_new_tokens=4).why(2)
    assert (why.how, why.noise, why.runner_up) == ("searched", None, None)
    assert why.json()["noise"] is None and why.replay() is None


def test_the_only_one_left(cy):
    why = cy.generate("a", temperature=1.0, top_k=1, max_new_tokens=2, why=True).why(0)
    assert (why.how, why.runner_up) == ("only", None)
    assert why.stages["top_k"].after == 1


def test_drafts_keep_the_rows_of_what_was_taken(wide):
    """Right guesses, wrong ones and none: each token stands with the row of its own place."""
    rules, model = (temperature(0.9), top_k(20)), wide.model
    [plain] = engine_zoo.run(model, Request(
        (1, 2), Sample(), rules, (MaxNew(12),), seed=5, why=True))
    [want] = plain.branches

    class Guess:
        def guess(self, branch):
            ahead = want.tokens[branch.written:branch.written + 3]
            return [*ahead[:2], (ahead[-1] + 1) % 256] if ahead else []

    [drafted] = engine_zoo.run(model, Request(
        (1, 2), Sample(), rules, (MaxNew(12),), Guess(), seed=5, why=True))
    [got] = drafted.branches
    assert drafted.usage.accepted and drafted.usage.rejected and got.tokens == want.tokens
    for one, other in zip(got.facts, want.facts, strict=True):
        assert one.row.pick[0] == one.token
        assert one.row.raw == pytest.approx(other.row.raw)
        assert Why(0, one, wide.facts).stages["top_k"].after == 20


def test_a_record_is_kept_where_it_is_asked_for(wide):
    out = wide.generate("Hello", max_new_tokens=3)
    assert out.first.whys == () and all(f.row is None for f in kept_facts(wide, why=False))
    assert all(f.row is not None for f in kept_facts(wide, why=True))
    with pytest.raises(ParameterError, match="pass why=True") as error:
        out.why(0)
    assert error.value.name == "why"


def kept_facts(lm, why):
    [job] = engine_zoo.run(lm.model, Request((1,), Sample(), (greedy(),), (MaxNew(3),), why=why))
    return job.branches[0].facts


def test_positions_count_from_either_end(wide):
    out = wide.generate("Hello", max_new_tokens=3, why=True)
    assert out.why(-1) is out.why(2) is out[0].why(np.int64(2)) and out.why(-3).position == 0
    for wrong in (3, -4):
        with pytest.raises(IndexError, match="3 tokens were written"):
            out.why(wrong)
    with pytest.raises(TypeError):
        out.why("0")


def test_json_holds_the_record_of_each_token(wide):
    out = wide.generate("Hello", max_new_tokens=3, temperature=0.9, top_k=40, seed=1, why=True)
    told = json.loads(json.dumps(out.to_json(), allow_nan=False))
    assert told["params"]["why"] is True
    for token, why in zip(told["tokens"], out.first.whys, strict=True):
        found = token["why"]
        assert (found["id"], found["how"]) == (token["id"], why.how)
        scale, cut = found["stages"]
        assert scale["rule"] == "temperature(0.9)" and scale["moved"] > 0
        assert (cut["before"], cut["after"], cut["name"]) == (256, 40, "top_k")
        assert len(cut["removed"]) == 10 and cut["mass"] == why.stages["top_k"].mass
        assert cut["removed"][0]["prob"] == cut["cutoff"]["removed"]
        assert found["noise"]["seed"] == 1 and found["runner_up"]["behind"] > 0
    assert "tokens" not in wide.generate("Hello", max_new_tokens=1).to_json()


def test_a_record_reads_as_a_table(wide):
    why = wide.generate("Hello", max_new_tokens=2, temperature=0.9, top_k=40, seed=1, why=True
                        ).why(1)
    lines = str(why).splitlines()
    assert lines[0].startswith("token 1 ") and lines[0].endswith(": drawn")
    [cut] = [line.split() for line in lines if line.startswith("top_k(40)")]
    assert cut[1:3] == ["256", "40"]
    assert any("seed 1, choice 0, position 6" in line for line in lines)
    assert lines[-1].startswith("runner-up ")


@pytest.mark.parametrize("params", [
    {"choice": [" blue", " a deep blue"]}, {"watermark": {"kind": "kgw"}},
    {"watermark": {"kind": "gumbel", "hashing_key": 5, "context_width": 1}},
    {"watermark": {"kind": "synthid", "keys": [1, 2, 3], "ngram_len": 2}}, {"mirostat": 1},
    {"adaptive_target": 0.3}, {"dry_multiplier": 0.8, "dry_allowed_length": 1},
    {"logits_processor": lambda ids, row: row / 2}, {"xtc_probability": 1.0},
    {"order": ["suppress", "forced_first"], "forced_bos_token_id": 5, "suppress_tokens": [5]},
], ids=lambda params: next(iter(params)))
def test_every_kind_of_rule_has_its_record(wide, params):
    """Those that remember, look at the text, move the noise, or bring a token back."""
    out = wide.generate("Hello", max_new_tokens=5, seed=2, do_sample=True, why=True, **params)
    for token, why in zip(out.tokens, out.first.whys, strict=True):
        assert why.replay() == (token.id, token.processed_logprob)
        total = sum(stage.raw_mass for stage in why.stages) + why.stages.raw_mass
        assert total == pytest.approx(1, abs=1e-6)
        assert json.loads(json.dumps(why.json(), allow_nan=False))["id"] == token.id
        assert len(str(why).splitlines()) >= 4


def test_what_a_rule_remembered_is_in_the_record(wide):
    out = wide.generate("Hello", mirostat=2, mirostat_tau=3.0, mirostat_eta=0.5, seed=0,
                        max_new_tokens=4, why=True)
    mu = 6.0  # twice the target
    for why in out.first.whys:
        assert why.stages["mirostat_2"].state == pytest.approx(mu)
        mu -= 0.5 * (-why.processed_logprob / math.log(2) - 3.0)


# ── step by step ─────────────────────────────────────────────────────────────────────────────────
def test_a_step_has_its_stages_and_its_record(wide):
    asked = {"temperature": 0.8, "top_p": 0.9, "seed": 0, "max_new_tokens": 4}
    out = wide.generate("Hello", why=True, **asked)
    for step, want in zip(wide.steps("Hello", **asked), out.first.whys, strict=True):
        cut = step.stages["top_p"]
        assert cut.mass == want.stages["top_p"].mass and 0 < cut.mass < 0.1 + 1e-6
        assert cut.removed.ids.tolist() == want.stages["top_p"].removed.ids.tolist()
        why = step.why()
        assert (why.position, why.id, why.how) == (want.position, want.id, "drawn")
        assert why.json() == want.json()


def test_a_chosen_token_has_its_record_too(wide):
    steps = wide.steps("Hello", temperature=0.8, top_k=2, seed=0, max_new_tokens=3, why=True)
    for step in steps:
        if step.index == 1:
            worst = int(np.argmin(step.row.raw))
            step.choose(worst)
            assert step.why().processed_rank is None
    [_, chosen, last] = steps.output.first.whys
    assert (chosen.id, chosen.how, chosen.processed_rank) == (worst, "given", None)
    assert "removed" in str(chosen) and chosen.runner_up is None
    assert last.row.seat.place[2] == len(b"Hello") + 2


def test_the_record_of_a_step_does_not_change_as_the_text_goes_on(wide):
    asked = {"repetition_penalty": 1.5, "temperature": 1.0, "seed": 4, "max_new_tokens": 12}
    steps = list(wide.steps("Hello", **asked))
    again = wide.generate("Hello", why=True, **asked).first.whys
    for step, why in zip(steps, again, strict=True):
        assert step.stages["repetition_penalty"].moved == why.stages["repetition_penalty"].moved
        assert step.why().json() == why.json()


def test_the_page_shows_what_is_printed(smol):
    page = (Path(__file__).resolve().parents[2] / "docs" / "why.md").read_text(encoding="utf-8")
    asked = {"repetition_penalty": 1.2, "top_p": 0.9, "seed": 1}
    out = smol.generate(SKY, max_new_tokens=4, temperature=0.8, top_k=40, why=True, **asked)
    assert str(out.why(3)) in page
    found = smol.against(SKY, order="sglang", max_new_tokens=20, temperature=0.9, **asked)
    assert str(found) in page


def test_a_program_s_records_tell_of_the_rules_of_their_stage(wide):
    out = wide.generate("abc", strategy="beam:3@4 >> sample:top_k=5@3 >> greedy", why=True, seed=1,
                        max_new_tokens=9, repetition_penalty=1.2, guidance_scale=2.0)
    names = [[stage.name for stage in why.stages] for why in out.first.whys]
    assert names == [["repetition_penalty"]] * 4 + [["repetition_penalty", "top_k"]] * 3 + [
        ["repetition_penalty", "greedy"]] * 2
    assert [why.how for why in out.first.whys] == ["searched"] * 4 + ["drawn"] * 3 + ["greedy"] * 2
    for why, token in zip(out.first.whys[4:], out.tokens[4:], strict=True):
        assert why.replay()[0] == token.id and why.logprob == token.logprob


def test_a_schedule_s_record_has_the_number_of_its_step(wide):
    out = wide.generate("abc", temperature="2..1/4", why=True, seed=1, max_new_tokens=6)
    assert [why.stages[0].rule for why in out.first.whys] == [
        "temperature(2)", "temperature(1.75)", "temperature(1.5)", "temperature(1.25)",
        "temperature(1)", "temperature(1)"]
    assert all(why.replay()[0] == why.id for why in out.first.whys)
