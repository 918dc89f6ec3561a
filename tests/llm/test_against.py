"""Two orders of the rules on one model: the first token that differs, and the rule that made it."""

import json

import models_zoo as zoo
import numpy as np
import pytest

from unspool.core.errors import ParameterError, RowError
from unspool.strategies import Force

PARAMS = [
    {"temperature": 1.3, "top_p": 0.8},
    {"temperature": 0.7, "min_p": 0.1, "repetition_penalty": 1.5},
    {"temperature": 1.0, "mirostat": 2, "mirostat_tau": 3.0, "top_k": 100},
    {"temperature": 1.5, "xtc_probability": 0.5, "xtc_threshold": 0.02, "top_k": 60},
    {"repetition_penalty": 2.0, "top_k": 20},
    {},
]
ORDERS = {
    "hf": (0,), "llama.cpp": (0, 1, 3, 5), "mlx": (1, 3, 4), "sglang": (1,), "vllm": (5,),
    "mirostat, temperature, top_k": (2,), "min_p, temperature, repetition_penalty": (1,),
    "top_k, xtc, temperature": (3,),
}


@pytest.mark.parametrize(("order", "params"), [
    (order, PARAMS[i]) for order, which in ORDERS.items() for i in which], ids=repr)
def test_it_differs_where_the_two_texts_do(wide, order, params):
    """Each side writes its text on its own, with the same seed."""
    parted = 0
    for seed in range(4):
        asked = {"seed": seed, "max_new_tokens": 8, **params}
        found = wide.against("Hello", order=order, **asked)
        ours = wide.generate("Hello", **asked).token_ids
        theirs = wide.generate("Hello", order=order, **asked).token_ids
        same = next((i for i in range(8) if ours[i] != theirs[i]), 8)
        assert found.tokens == same
        assert all(m.position < same and m.moved > 1e-6 for m in found.moved)
        if same == 8:
            assert found.parting is None
            continue
        parted += 1
        p = found.parting
        assert (p.position, p.ours.id, p.theirs.id) == (same, ours[same], theirs[same])
        assert p.ours.ours > 0 and p.theirs.theirs > 0
        side = found.ours if p.side == "ours" else found.theirs
        assert p.stage in side.rules
        if p.removed:
            lost = p.theirs.ours if p.side == "ours" else p.ours.theirs
            assert lost == 0
    assert parted


def test_the_stage_that_removed(wide):
    """hf's default top_k of 50 is the only rule there is."""
    for seed in range(8):
        asked = {"do_sample": True, "temperature": 2.0, "seed": seed, "max_new_tokens": 20}
        one = wide.against("Hello", order="hf", **asked).parting
        other = wide.against("Hello", order="unspool", ours="hf", **asked).parting
        if one is None:
            continue
        assert (one.stage, one.side, one.removed) == ("top_k(50, 1)", "theirs", True)
        assert one.ours.theirs == 0 < one.ours.ours
        assert (other.stage, other.side, other.removed) == ("top_k(50, 1)", "ours", True)
        assert other.theirs == one.ours._replace(ours=one.ours.theirs, theirs=one.ours.ours)


def test_the_stage_that_puts_one_before_another(cy):
    """After "a" comes "b", unless a penalty counts the prompt, in which "b" stands."""
    found = cy.against("ba", order="mlx", presence_penalty=50.0, max_new_tokens=3)
    p = found.parting
    assert (p.position, p.ours.text, p.side, p.removed) == (0, "b", "theirs", False)
    assert p.stage == "presence_penalty(50, 1, 20)" and found.tokens == 0 and found.text == ""
    turned = cy.against("ba", order="unspool", ours="mlx", presence_penalty=50.0,
                        max_new_tokens=3).parting
    assert (turned.side, turned.stage, turned.theirs.text) == ("ours", p.stage, "b")


def test_the_order_of_two_cuts(make):
    """MK: 0.5, 0.3, 0.15, 0.05. top_p(0.6) leaves two; tempered by 4 first, it leaves three."""
    lm = make(zoo.markov(np.tile(np.log([0.5, 0.3, 0.15, 0.05]), (4, 1))))
    asked = {"temperature": 4.0, "top_p": 0.6, "max_new_tokens": 1}
    stages = set()
    for seed in range(40):
        found = lm.against([0], order=["top_p", "temperature"], seed=seed, **asked)
        assert found.ours.rules == ("temperature(4)", "top_p(0.6)")
        assert found.theirs.rules == ("top_p(0.6)", "temperature(4)")
        p = found.parting
        if p is None:
            [moved] = found.moved
            flat = np.array([0.5, 0.3, 0.15]) ** 0.25
            assert moved.moved == pytest.approx(flat[2] / flat.sum())
            assert (moved.ours, moved.theirs) == (1, 0)
        else:
            assert p.ours.id == 2 and p.theirs.id in (0, 1)
            assert p.ours.ours == pytest.approx(flat_share(2)) and p.ours.theirs == 0
            stages.add((p.side, p.stage, p.removed))
    # Where token 2 leads by its noise, their cut takes it; else our temperature lets it pass.
    assert stages == {("theirs", "top_p(0.6)", True), ("ours", "temperature(4)", False)}


def flat_share(token):
    flat = np.array([0.5, 0.3, 0.15]) ** 0.25
    return flat[token] / flat.sum()


@pytest.mark.parametrize("own", [{"order": "hf"}, {"samplers": "hf"}], ids=repr)
def test_an_order_of_the_request_itself(wide, own):
    asked = {"temperature": 0.9, "seed": 1, "max_new_tokens": 2}
    one = wide.against({"prompt": "Hello", **own, **asked}, order="unspool")
    assert (one.ours.name, one.theirs.name) == ("hf", "unspool")
    assert one == wide.against("Hello", order="unspool", ours="hf", **asked)


def test_where_nothing_differs(wide):
    found = wide.against("Hello", order="unspool", temperature=0.9, seed=1, max_new_tokens=5)
    text = wide.generate("Hello", temperature=0.9, seed=1, max_new_tokens=5)
    assert found.parting is None and found.moved == () and found.tokens == 5
    assert found.text == "".join(token.text for token in text.tokens)
    assert "no token differs" in str(found)


def test_without_a_seed_both_sides_have_the_same(wide):
    for _ in range(5):
        found = wide.against("Hello", order=["temperature"], temperature=1.5, max_new_tokens=5)
        assert found.parting is None


def test_it_ends_at_the_first_token_that_differs(cy):
    cy.against("ba", order="mlx", presence_penalty=50.0, max_new_tokens=300)
    cy.generate("a", max_new_tokens=1)  # by then the worker has heard of it
    assert cy.worker.loop.engine.jobs == []


def test_what_is_told(cy):
    found = cy.against("ba", order="mlx", presence_penalty=50.0, max_new_tokens=3)
    told = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert told["ours"] == {"order": "unspool", "rules": ["presence_penalty(50)", "greedy()"],
                            "notes": []}
    assert told["theirs"]["rules"] == ["presence_penalty(50, 1, 20)", "greedy()"]
    differs = told["differs"]
    assert (differs["position"], differs["side"], differs["stage"], differs["effect"]) == (
        0, "theirs", "presence_penalty(50, 1, 20)", "overtaken")
    assert differs["ours"]["text"] == "b" and told["moved"] == [] and told["tokens"] == 0
    lines = str(found).splitlines()
    assert any(line.startswith("made by theirs (mlx): presence_penalty(50, 1, 20) puts ")
               and line.endswith(' before "b"') for line in lines)


@pytest.mark.parametrize(("params", "message"), [
    ({"n": 2}, "n=2"), ({"num_beams": 2}, "num_beams=2"), ({"strategy": "beam"}, "num_beams=5"),
    ({"strategy": "greedy@2 >> sample"}, "orders are compared in one stage"),
    ({"strategy": Force((1,))}, "only what is picked"), ({"order": "vlm"}, "did you mean vllm"),
    ({"ours": "nothing"}, "order='nothing'"), ({"typical_p": 0.5}, "typical_p"),
], ids=str)
def test_refusals(cy, params, message):
    with pytest.raises(ParameterError, match=message):
        cy.against("a", **{"max_new_tokens": 3, "temperature": 1.0, **params})
    assert cy.worker.thread is None or not cy.worker.loop.engine.jobs


def test_an_order_that_leaves_no_token(cy):
    asked = {"suppress_tokens": [3], "forced_bos_token_id": 3, "max_new_tokens": 2}
    assert cy.generate("a", order="suppress, forced_first", **asked).token_ids == [3, 4]
    with pytest.raises(RowError, match="the other order: no token is left: forced_first"):
        cy.against("a", order="forced_first, suppress", ours="suppress, forced_first", **asked)
