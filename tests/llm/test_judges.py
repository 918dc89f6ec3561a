"""From parameters to scorers: by name, or a function of a caller's own."""
import models_zoo as zoo
import pytest

from unspool.core.errors import ParameterError
from unspool.llm.judges import extractor_of, groups, reward_of, utility_of


@pytest.fixture(scope="module")
def lm(keep, kit):
    return keep(zoo.tiny(vocab_size=40, max_position_embeddings=128), kit.letters(40))


HOW = {"max_new_tokens": 6, "seed": 2, "best_of": 4, "n": 4, "strategy": "best_of"}


def texts(lm, **given):
    return lm.generate([1, 2], **{**HOW, **given})


def test_rewards(lm):
    every = texts(lm)
    assert [c.score for c in every] == sorted((c.logprob for c in every), reverse=True)
    found = texts(lm, reward="logprob")
    assert [c.text for c in found] == [c.text for c in every]
    found = texts(lm, reward="mean_logprob", ignore_eos=True)
    assert [c.score for c in found] == pytest.approx([c.logprob / 6 for c in found])
    last = texts(lm, reward=lambda texts: [ord(text[-1]) for text in texts])
    assert [c.score for c in last] == [ord(c.text[-1]) for c in last]
    assert [c.score for c in last] == sorted((c.score for c in last), reverse=True)
    assert sorted(c.text for c in last) == sorted(c.text for c in every)


def test_a_reward_with_its_own_method_sees_the_branches(lm):
    class Longest:
        def rewards(self, branches):
            return [branch.written + branch.tokens[0] / 100 for branch in branches]

    found = texts(lm, reward=Longest())
    assert [c.score for c in found] == [len(c.tokens) + c.token_ids[0] / 100 for c in found]


@pytest.mark.parametrize("utility", ["chrf", "chrf++", "bleu", "states",
                                     lambda one, two: float(one == two)], ids=str)
def test_utilities(lm, utility):
    found = texts(lm, strategy="mbr", utility=utility)
    assert [c.score for c in found] == sorted((c.score for c in found), reverse=True)
    assert all(0 < c.score <= 1.0 + 1e-9 for c in found)


def test_answers(lm):
    found = texts(lm, strategy="self_consistency", n=1, answer=lambda text: text[0])
    every = texts(lm)
    first = [c.text[0] for c in every]
    assert found.text[0] == max(first, key=first.count)
    assert found.score == pytest.approx(first.count(found.text[0]) / 4)
    by_pattern = texts(lm, strategy="self_consistency", n=1, answer="^(.)")
    assert by_pattern.text[0] == found.text[0]


@pytest.mark.parametrize(("name", "value", "said"), [
    ("reward", "best", "must be logprob, mean_logprob, or a function"), ("reward", 5, "must be"),
    ("utility", "comet", "must be chrf"), ("utility", 5, "must be chrf"),
    ("answer", "[0-9", "is no regular expression"), ("answer", "", "must be number"),
    ("answer", 5, "must be number"),
])
def test_what_judges_nothing_is_refused_by_name(lm, name, value, said):
    make = {"reward": reward_of, "utility": utility_of, "answer": extractor_of}[name]
    strategy = {"reward": "best_of", "utility": "mbr", "answer": "self_consistency"}[name]
    with pytest.raises(ParameterError, match=said) as error:
        make(lm.facts, value)
    assert error.value.name == name
    with pytest.raises(ParameterError, match=said):
        lm.explain([1, 2], strategy=strategy, **{name: value})


def test_the_group_that_holds_the_answer():
    assert [groups(p) for p in (r"\d+", r"is (\d+)", r"\(\d+\)", r"(?:a|b)\d", r"(?:a)(b)",
                                r"(?P<x>b)")] == [0, 1, 0, 0, 1, 1]


def test_states_need_a_model_that_shows_them(make, kit):
    from dataclasses import replace

    lm = make(zoo.tiny(vocab_size=40, max_position_embeddings=128), kit.letters(40))
    facts = replace(lm.facts, width=0)
    with pytest.raises(ParameterError, match="utility=states: it compares hidden states"):
        utility_of(facts, "states")
