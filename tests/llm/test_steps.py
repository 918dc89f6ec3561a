"""The caller sees each distribution and may choose."""

import math
import threading

import models_zoo as zoo
import pytest

from unspool.core.errors import ParameterError, PromptError, UnspoolError

PARAMS = [
    {},
    {"temperature": 1.2, "seed": 3},
    {"temperature": 0.8, "top_p": 0.9, "seed": 0},
    {"strategy": "top_k:5", "seed": 9},
    {"temperature": 1.2, "seed": 3, "use_cache": False},
]


@pytest.mark.parametrize("params", PARAMS, ids=repr)
def test_steps_without_choosing_write_what_generate_writes(wide, params):
    output = wide.generate("Hello", max_new_tokens=8, **params)
    steps = list(wide.steps("Hello", max_new_tokens=8, **params))
    assert [s.id for s in steps] == output.token_ids
    assert [s.index for s in steps] == list(range(8))
    assert [s.logprob for s in steps] == pytest.approx([t.logprob for t in output.tokens])
    assert wide.steps("Hello").output is None
    processed = [math.log(s.shaped.prob(s.id)) for s in steps]
    assert processed == pytest.approx([t.processed_logprob for t in output.tokens])


def test_each_step_is_what_next_says_there(wide):
    ids = list(b"Hello")
    for step in wide.steps("Hello", max_new_tokens=5, temperature=0.7, top_k=9, seed=2):
        raw, shaped = wide.next(ids), wide.next(ids, temperature=0.7, top_k=9)
        assert step.raw.logprobs == pytest.approx(raw.logprobs)
        assert step.dist.probs == pytest.approx(shaped.probs)
        assert step.entropy == pytest.approx(shaped.entropy_bits)
        assert step.top(3) == step.dist.top(3)
        assert [t.id for t in step.top(20)] == [t.id for t in shaped.top(20)]
        assert step.prob == pytest.approx(shaped.prob(step.id))
        assert step.token == wide.facts.text(step.id)
        ids.append(step.id)
    assert len(ids) == 10


def test_the_text_so_far(cy):
    steps = list(cy.steps("a", max_new_tokens=3))
    assert [s.text_so_far for s in steps] == ["", "b", "bc"]
    assert [s.dist.prompt for s in steps] == ["a", "ab", "abc"] == [s.raw.prompt for s in steps]
    assert [s.dist.prompt for s in cy.steps([0], max_new_tokens=2)] == [[0], [0]]


def test_choosing_by_id_and_by_text(cy):
    tokens = []
    for step in cy.steps("a", max_new_tokens=5):
        if step.index == 1:
            step.choose(7)
        if step.index == 3:
            step.choose("d")
        tokens.append(step.token)
    assert tokens == ["b", "h", "i", "d", "e"]


def test_choosing_a_text_of_several_tokens_takes_as_many_steps(cy):
    steps = []
    for step in cy.steps("a", max_new_tokens=6):
        if step.index == 1:
            step.choose("gag")
        steps.append((step.index, step.token))
    assert steps == [(0, "b"), (1, "g"), (2, "a"), (3, "g"), (4, "h"), (5, "i")]


def test_what_was_forced_may_be_chosen_again(cy):
    tokens = []
    for step in cy.steps("a", max_new_tokens=5):
        if step.index == 0:
            step.choose("ggg")
        if step.index == 1:
            assert step.token == "g"
            step.choose("k")
        tokens.append(step.token)
    assert tokens == list("gklab")


def test_choosing_the_pick_changes_nothing(wide):
    plain = [s.id for s in wide.steps("Hello", max_new_tokens=6, temperature=1.0, seed=1)]
    chosen = []
    for step in wide.steps("Hello", max_new_tokens=6, temperature=1.0, seed=1):
        step.choose(step.id)
        chosen.append(step.id)
    assert chosen == plain


def test_a_choice_meets_the_stops_like_any_token(cy):
    seen = []
    for step in cy.steps("a", max_new_tokens=9, stop="hi"):
        if step.index == 0:
            step.choose("hij")
        seen.append(step.token)
    assert seen == ["h", "i"]
    for step in cy.steps("a", max_new_tokens=9, eos_token_id=7):
        step.choose(7)
    assert step.index == 0


def test_a_removed_token_may_be_chosen(cy):
    for step in cy.steps("a", max_new_tokens=2, top_k=1, temperature=1.0):
        step.choose("g")
        assert step.prob == 0.0 and step.logprob < -7
        break


@pytest.mark.parametrize("wrong", [-1, 12, 2**63, 1.5, True, None, [1]])
def test_a_choice_is_a_token_of_the_vocabulary(cy, wrong):
    for step in cy.steps("a", max_new_tokens=2):
        with pytest.raises(PromptError):
            step.choose(wrong)
        assert step.token in "bc"  # as if it had not been asked
    assert step.index == 1


def test_a_choice_comes_before_the_next_step(cy):
    steps = cy.steps("a", max_new_tokens=3)
    first = next(steps)
    with pytest.raises(ParameterError, match="empty text is no token"):
        first.choose("")
    next(steps)
    with pytest.raises(ParameterError, match="step 0 is written"):
        first.choose("k")


@pytest.mark.parametrize(
    "params", [{"n": 2}, {"num_beams": 2}, {"strategy": "beam"}, {"strategy": "beam:3"}], ids=repr
)
def test_steps_follow_one_text(cy, params):
    with pytest.raises(ParameterError, match="steps follow one text"):
        cy.steps("a", **params)


def test_refusals_come_before_the_first_step(cy):
    with pytest.raises(PromptError):
        cy.steps("")
    with pytest.raises(ParameterError):
        cy.steps("a", temprature=1)
    with pytest.raises(PromptError, match="where one is asked for"):
        cy.steps(["a", "b"])


def test_leaving_the_loop_cancels(cy):
    for step in cy.steps("a", max_new_tokens=400):
        if step.index == 2:
            break
    cy.generate("a", max_new_tokens=2)  # by then the worker has heard of it
    assert cy.worker.loop.engine.jobs == []


def test_two_loops_at_once_and_a_request_beside_them(cy):
    one, two = cy.steps("a", max_new_tokens=3), cy.steps("e", max_new_tokens=3)
    seen = []
    for a, b in zip(one, two, strict=True):
        seen.append(a.token + b.token)
        assert cy.generate("c", max_new_tokens=2).text == "de"
    assert seen == ["bf", "cg", "dh"]


def test_closing_the_model_ends_the_loop(cy):
    seen = []
    for step in cy.steps("a", max_new_tokens=100):
        seen.append(step.token)
        if step.index == 1:
            closing = threading.Thread(target=cy.close)
            closing.start()
            closing.join(30)
            assert not closing.is_alive()
    assert seen == ["b", "c"]
    with pytest.raises(UnspoolError, match="closed"):
        cy.steps("a")


class Fragile:
    """A tokenizer that fails when the text with "h" is looked at."""

    def __init__(self, words):
        self.words = words

    def __getattr__(self, name):
        return getattr(self.words, name)

    def piece(self, token, **options):
        if token == 7:
            raise ValueError("not this one")
        return self.words.piece(token, **options)


def test_a_fault_on_a_chosen_token_is_raised_in_the_loop(make, kit):
    lm = make(zoo.markov(zoo.cycle(12)), Fragile(kit.letters()))
    with pytest.raises(ValueError, match="not this one"):
        for step in lm.steps("a", max_new_tokens=5, stop="x"):
            step.choose(7)
    assert lm.generate("a", max_new_tokens=2, stop="x").text == "bc"


def test_the_score_of_a_text_is_the_sum_over_its_steps(wide):
    """The chain rule."""
    steps = list(wide.steps("Hello", max_new_tokens=6, temperature=1.0, seed=4))
    ids = [s.id for s in steps]
    score = wide.score(ids, given="Hello")
    assert score.logprob == pytest.approx(sum(s.logprob for s in steps), abs=1e-9)


def test_steps_of_the_default_model(smol):
    words = ["a", " time"]
    seen = []
    for step in smol.steps("Once upon", max_new_tokens=3, temperature=0.8, top_p=0.9, seed=0):
        if step.index < 2:
            step.choose(words[step.index])
        seen.append(step.token)
        assert 0 <= step.prob <= 1 and len(step.top(3)) >= 1
    assert seen[:2] == words


def test_a_greedy_step_shows_the_models_own_distribution(wide):
    steps = wide.steps("Hello", max_new_tokens=3)
    for step in steps:
        assert step.dist is step.raw and 0 < step.prob < 1 and step.entropy > 0
        assert step.shaped.prob(step.id) == 1.0
        assert step.id == step.top(1)[0].id
        assert steps.output is None
    assert steps.output.token_ids == wide.generate("Hello", max_new_tokens=3).token_ids


def test_a_function_of_ones_own_is_called_once_for_each_step(wide):
    """So one that keeps count writes what `generate` writes."""
    def counting():
        calls = iter(range(97, 122))

        def only(ids, logits):
            logits[next(calls)] += 1000
            return logits

        return only

    want = wide.generate("Hello", max_new_tokens=5, logits_processor=counting()).token_ids
    steps = wide.steps("Hello", max_new_tokens=5, logits_processor=counting())
    assert [step.id for step in steps] == want == [97, 98, 99, 100, 101]


# ── programs and other readers ───────────────────────────────────────────────────────────────────
PROGRAM = {"strategy": "greedy@3 >> sample:top_k=9@5 >> greedy", "max_new_tokens": 10, "seed": 2}


def test_steps_go_through_the_stages_of_a_program(wide):
    steps = wide.steps("abc", **PROGRAM)
    seen = [(step.id, step.greedy, [stage.name for stage in step.stages]) for step in steps]
    assert [token for token, _, _ in seen] == wide.generate("abc", **PROGRAM).token_ids
    assert [greedy for _, greedy, _ in seen] == [True] * 3 + [False] * 5 + [True] * 2
    assert [names for _, _, names in seen] == [["greedy"]] * 3 + [["top_k"]] * 5 + [["greedy"]] * 2
    assert steps.output.token_ids == [token for token, _, _ in seen]


@pytest.mark.parametrize("place", [0, 2, 3, 7, 9])
def test_a_token_that_is_chosen_counts_for_the_stage(wide, place):
    """Also where it is the last one of a stage."""
    steps = wide.steps("abc", **PROGRAM)
    kinds = []
    for step in steps:
        kinds.append(step.greedy)
        if step.index == place:
            step.choose(7)
    assert kinds == [True] * 3 + [False] * 5 + [True] * 2
    assert steps.output.token_ids[place] == 7 and len(steps.output.tokens) == 10


@pytest.mark.parametrize("given", [
    {"strategy": "beam:3@4 >> sample"}, {"strategy": "sample@3 >> mbr:3"}, {"best_of": 3},
    {"strategy": "greedy@entropy>2 >> sample"}, {"penalty_alpha": 0.6}, {"strategy": "tree"},
    {"must_contain": ["x"]}, {"strategy": "sample:n=2@3 >> sample"},
    {"strategy": "greedy@3 >> sample", "n": 2},
])  # fmt: skip
def test_texts_that_compete_have_no_steps(wide, given):
    with pytest.raises(ParameterError) as error:
        wide.steps("abc", max_new_tokens=9, **given)
    assert "step" in str(error.value) and error.value.name in given | {"strategy": 0}


def test_each_step_shows_what_all_readers_say_together(wide):
    given = {"guidance_scale": 2.0, "negative_prompt": "zz", "max_new_tokens": 4}
    for step in wide.steps("abc", **given):
        mixed = step.raw.top(3)
    out = wide.generate("abc", **given, logprobs=3)
    assert [t.id for t in mixed] == [t.id for t in out.tokens[-1].top]
    first = wide.next("abc", guidance_scale=2.0, negative_prompt="zz")
    assert [t.id for t in first.top(3)] == [t.id for t in out.tokens[0].top]
    assert first.top(1)[0].prob != wide.next("abc").top(1)[0].prob
