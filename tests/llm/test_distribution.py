import json
import math

import models_zoo as zoo
import numpy as np
import pytest
import torch

from unspool.core.errors import ParameterError, PromptError
from unspool.llm.distribution import Distribution


@pytest.fixture
def dist(make, kit):
    """Probabilities 1/2, 1/4, 1/8, 1/8 of a, b, c, d."""
    table = torch.log(torch.tensor([[0.5, 0.25, 0.125, 0.125]] * 4, dtype=torch.float64))
    return make(zoo.markov(table), kit.letters(4)).next("a")


def test_probabilities_by_text_and_id(dist):
    assert dist.probs == pytest.approx([0.5, 0.25, 0.125, 0.125])
    assert dist.prob("b") == dist.prob(1) == dist.prob(np.int64(1)) == pytest.approx(0.25)
    assert dist.logprob("b") == pytest.approx(math.log(0.25))
    assert dist.entropy_bits == pytest.approx(1.75)
    assert (dist.prompt, dist.model, dist.numerics) == ("a", "tiny", "reference")


def test_the_likeliest_come_first_and_ties_by_the_lower_id(dist):
    top = dist.top(3)
    assert [(t.id, t.text, t.rank) for t in top] == [(0, "a", 1), (1, "b", 2), (2, "c", 3)]
    assert [t.prob for t in top] == pytest.approx([0.5, 0.25, 0.125])
    assert [t.id for t in dist.top(99)] == [0, 1, 2, 3]
    assert dist.top() == dist.top(10)


def test_json(dist):
    found = json.loads(json.dumps(dist.to_json(k=2), allow_nan=False))
    assert list(found) == ["prompt", "model", "numerics", "entropy_bits", "top"]
    assert [list(row) for row in found["top"]] == [["id", "text", "prob", "logprob", "rank"]] * 2


@pytest.mark.parametrize("token", ["ab", "", "z", -1, 4, 2**63, 1.0, True, None])
def test_what_is_not_one_token(dist, token):
    with pytest.raises(PromptError):
        dist.prob(token)


@pytest.mark.parametrize("k", [0, -1, 1.5, "3", None])
def test_how_many_is_a_whole_number(dist, k):
    with pytest.raises(ParameterError, match="k="):
        dist.top(k)


def test_removed_tokens_have_no_probability_and_no_row(make, kit):
    lm = make(zoo.markov(zoo.cycle(4)), kit.letters(4))
    dist = lm.next("a", top_k=1)
    assert [t.text for t in dist.top(4)] == ["b"]
    assert dist.prob("c") == 0 and dist.logprob("c") == -math.inf
    assert dist.entropy_bits == 0 and math.copysign(1, dist.entropy_bits) == 1
    json.dumps(dist.to_json(), allow_nan=False)


def test_the_whole_distribution_adds_up(wide):
    for params in ({}, {"temperature": 0.7}, {"top_p": 0.8}, {"top_k": 7, "temperature": 2.0}):
        dist = wide.next("Hello", **params)
        assert dist.probs.sum() == pytest.approx(1)
        expected = -sum(p * math.log2(p) for p in dist.probs if p)
        assert dist.entropy_bits == pytest.approx(expected)


def test_a_chart(dist, tmp_path):
    path = tmp_path / "chart.html"
    figure = dist.plot(str(path), k=3)
    assert len(figure.data[0].y) == 3 or len(figure.data[0].x) == 3
    assert path.stat().st_size > 1000


def test_the_chart_shows_ten_bars_under_the_prompt(cy, make):
    """M4. Ids are titled by their text, a chat by its last message."""
    figure = cy.next("abc").plot()
    assert len(figure.data[0].x) == 10 and figure.data[0].x[0] == cy.next("abc").prob("d")
    ids_only = make(zoo.markov(zoo.cycle(12)))
    said = [{"role": "system", "content": "x"}, {"role": "user", "content": "how?"}]
    titles = [Distribution(prompt, cy.next("a").logprobs, facts).title for prompt, facts in (
        ("abc", cy.facts), ([0, 1], cy.facts), ([0, 1], ids_only.facts), (said, cy.facts),
        (said[1], cy.facts))]
    assert titles == ["abc", "ab", "[0, 1]", "how?", "how?"]
    assert figure.layout.title.text == "abc"


def test_the_padding_of_a_head_is_never_written(make, kit):
    """B45: a head with more rows than the tokenizer has ids writes none of the others."""
    table = torch.zeros(12, 12)
    table[:, 8:] = 50.0
    model = zoo.markov(table)
    model.vocab = 8  # as `load` sets it
    lm = make(model, kit.letters(8))
    dist = lm.next("a")
    assert len(dist.probs) == 8 and dist.probs.sum() == pytest.approx(1)
    for params in ({}, {"temperature": 5.0, "seed": 1}, {"num_beams": 3}, {"min_p": 0.1}):
        output = lm.generate("a", max_new_tokens=9, logprobs=12, **params)
        assert max(output.token_ids) < 8
        assert all(len(t.top) == 8 for t in output.tokens)
    with pytest.raises(PromptError, match="outside the vocabulary: ids run from 0 to 7"):
        lm.generate([8])
