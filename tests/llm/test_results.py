"""What comes back: exactly the JSON that others rely on, and strict JSON whatever happens."""

import json
import math

import models_zoo as zoo
import numpy as np
import pytest
import torch

from unspool.core.records import Usage
from unspool.llm.results import Choice, Output, Ranked, Token, finite, strict

RUN = ["prompt", "model", "numerics", "text", "token_ids", "finish_reason", "stop_reason",
       "logprob", "score", "usage", "params", "notes"]  # fmt: skip
USAGE = ["prompt", "completion", "cached", "computed", "forwards", "drafted", "accepted",
         "rejected", "preempted", "evicted"]  # fmt: skip
CHOICE = ["text", "token_ids", "finish_reason", "stop_reason", "logprob", "score"]


def written(value):
    """Through strict JSON and back."""
    return json.loads(json.dumps(value, allow_nan=False), parse_constant=pytest.fail)


def test_the_json_of_one_result(cy):
    output = cy.generate("a", max_new_tokens=3, stop="d", seed=4)
    found = written(output.to_json())
    assert list(found) == RUN and list(found["usage"]) == USAGE
    assert (found["prompt"], found["model"], found["numerics"]) == ("a", "tiny", "reference")
    assert (found["text"], found["token_ids"]) == ("bc", [1, 2, 3])
    assert (found["finish_reason"], found["stop_reason"]) == ("stop", "d")
    assert found["logprob"] == pytest.approx(output.logprob) and found["score"] == output.score
    assert found["params"]["seed"] == 4 and found["params"]["stop"] == ["d"]
    assert found["notes"] == []


def test_the_json_of_several_choices(cy):
    found = written(cy.generate("a", max_new_tokens=3, n=2, temperature=1.0).to_json())
    assert list(found) == [*RUN[:3], "choices", *RUN[9:]]
    assert [list(choice) for choice in found["choices"]] == [CHOICE, CHOICE]


@pytest.mark.parametrize("count", [0, 1, 3, 12, 500])
def test_alternatives(cy, count):
    output = cy.generate("a", max_new_tokens=2, logprobs=count, temperature=0.5, top_k=2)
    found = written(output.to_json())
    assert [t["id"] for t in found["tokens"]] == output.token_ids
    for token in output.tokens:
        assert len(token.top) == min(count, 12)
        assert [r.rank for r in token.top] == list(range(1, len(token.top) + 1))
        logprobs = [r.logprob for r in token.top]
        assert logprobs == sorted(logprobs, reverse=True)
        if count:
            assert token.top[token.rank - 1].id == token.id
            assert token.top[token.rank - 1].logprob == token.logprob
        if count >= 12:
            assert sum(r.prob for r in token.top) == pytest.approx(1)
    assert "tokens" not in cy.generate("a", max_new_tokens=2).to_json()


def test_raw_and_processed_log_probabilities(make, kit):
    """B38: logits [2, 1, 0], temperature .5, top_k 2."""
    lm = make(zoo.markov(torch.tensor([[2.0, 1.0, 0.0]] * 3)), kit.letters(3))
    raw = [-0.4076, -1.4076, -2.4076]
    processed = [-0.1269, -2.1269, -math.inf]
    output = lm.generate("a", temperature=0.5, top_k=2, max_new_tokens=40, seed=1, logprobs=3)
    assert set(output.token_ids) == {0, 1}
    for token in output.tokens:
        assert token.logprob == pytest.approx(raw[token.id], abs=1e-4)
        assert token.processed_logprob == pytest.approx(processed[token.id], abs=1e-4)
        assert [r.logprob for r in token.top] == pytest.approx(raw, abs=1e-4)
        assert token.prob == pytest.approx(math.exp(token.logprob))
    assert output.logprob == pytest.approx(sum(t.logprob for t in output.tokens))
    assert output.score == pytest.approx(sum(t.processed_logprob for t in output.tokens))
    dist = lm.next("a", temperature=0.5, top_k=2)
    assert [dist.logprob(i) for i in range(3)] == pytest.approx(processed, abs=1e-4)


def test_an_end_token_has_its_entry(make, kit):
    """B38: a request whose only token is the end."""
    lm = make(zoo.markov(zoo.cycle(12)), kit.letters(), ends={1})
    output = lm.generate("a", max_new_tokens=5, logprobs=1)
    assert (output.text, output.token_ids, len(output.tokens)) == ("", [1], 1)
    assert output.tokens[0].top[0].id == 1 and output.usage.completion == 1


def test_removed_tokens_are_null_in_json(make, kit):
    """A token that the rules removed and the caller chose, and logits of -inf."""
    table = zoo.cycle(3).double()
    table[:, 2] = -1e300
    lm = make(zoo.markov(table), kit.letters(3))
    for step in lm.steps("a", max_new_tokens=1, top_k=1, temperature=1.0):
        step.choose("c")
        assert step.prob == 0 and step.dist.logprob("c") == -math.inf
    handle_json = written(lm.next("a", top_k=1).to_json())
    assert len(handle_json["top"]) == 1
    token = Token(1, "b", b"b", -1.0, -math.inf, 3, (Ranked(2, "c", 0.0, -math.inf, 3),))
    found = written(token.json())
    assert found["processed_logprob"] is None and found["top"][0]["logprob"] is None
    choice = Choice("b", (token,), "stop", 1, -math.inf)
    assert written(choice.json())["score"] is None


def test_an_output_is_a_sequence_of_choices(cy):
    output = cy.generate("a", max_new_tokens=3, n=3, temperature=9.0, seed=1)
    assert len(output) == 3 and list(output) == [output[0], output[1], output[2]]
    assert output[-1] is output[2] and output[:2] == output.choices[:2]
    first = output[0]
    for name in ("text", "tokens", "token_ids", "finish_reason", "stop_reason", "logprob", "score"):
        assert getattr(output, name) == getattr(first, name)
    assert first.logprob == sum(t.logprob for t in first.tokens)
    assert output.usage.completion == 9 and output.usage.prompt == 1
    assert output.trace and output.trace[0].edit == "fork"


def test_an_output_that_never_began():
    error = ValueError("no")
    output = Output("a", "m", "r", (), Usage(), {"temperature": math.nan}, error=error)
    found = written(output.to_json())
    assert list(found) == [*RUN[:3], "finish_reason", "error", *RUN[9:]]
    assert (found["finish_reason"], found["error"]) == ("error", "no")
    assert found["params"] == {"temperature": "nan"}
    for name in ("text", "tokens", "token_ids", "logprob", "score"):
        with pytest.raises(ValueError, match="no"):
            getattr(output, name)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (math.nan, "nan"), (-math.inf, "-inf"), (1.5, 1.5), (True, True), (None, None),
        ((1, [math.inf]), [1, ["inf"]]), ({"a": {"b": math.nan}}, {"a": {"b": "nan"}}),
        (b"x", "b'x'"), (np.float64(2.0), 2.0),
    ],
)  # fmt: skip
def test_strict_json_of_anything(value, plain):
    assert strict(value) == plain
    written(strict(value))


def test_finite():
    assert [finite(v) for v in (1.0, math.inf, -math.inf, math.nan)] == [1.0, None, None, None]


def test_prompts_in_json_are_what_was_asked(cy):
    for prompt, shown in (("a", "a"), (np.array([0, 1]), [0, 1]), ((0, 1), [0, 1])):
        output = cy.generate(prompt, max_new_tokens=1)
        assert written(output.to_json())["prompt"] == shown
        assert written(cy.next(prompt).to_json())["prompt"] == shown
    refused = cy.generate([np.array([0.5]), [object()]])
    assert all(o.error is not None for o in refused)
    for output in refused:
        written(output.to_json())


def test_an_output_prints_as_its_texts(cy):
    assert repr(cy.generate("a", max_new_tokens=2)) == "Output('bc'; length, 2 tokens)"
    [bad] = cy.generate([[99]])
    assert repr(bad).startswith("Output(error=PromptError(")
