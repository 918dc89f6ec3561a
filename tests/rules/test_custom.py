"""Rules of your own: what they are called with, what of their answers is refused, transformers'."""
import numpy as np
import pytest
from texts_zoo import WAYS, by_transformers, random_texts, values

from unspool.core.errors import ParameterError
from unspool.rules import custom, forced_first, prefix_allowed, suppress, temperature, top_k

GONE = -np.inf
ROW = [0.0, 1.0, 2.0, 3.0]


@WAYS
def test_a_function_gets_the_text_and_a_row_of_its_own(dtype):
    seen = []

    def no_repetition(ids, logits):
        seen.append((ids, logits.tolist()))
        logits[ids[-1]] = -np.inf  # it may change what it got
        return logits

    rule, text = custom(data=no_repetition), {"prompt": [0, 1], "written": [2], "dtype": dtype}
    assert values(ROW, rule, **text).tolist() == [0, 1, GONE, 3]
    assert values(ROW, temperature(2), rule, top_k(1), **text)[3] == 0
    assert seen == [([0, 1, 2], ROW), ([0, 1, 2], [-1.5, -1.0, -0.5, 0.0])]


@WAYS
def test_several_stand_among_other_rules(dtype):
    def first(ids, logits):
        return np.where(np.arange(4) > 1, logits, -np.inf)

    def double(ids, logits):
        return [2 * x for x in logits]

    rules = suppress(data=(3,)), custom(data=first), custom(data=double), top_k(1)
    assert values(ROW, *rules, dtype=dtype).tolist() == [GONE, GONE, 4, GONE]
    gone = suppress(data=(2, 3)), custom(data=first), custom(data=double)
    assert values(ROW, *gone, dtype=dtype).tolist() == [GONE] * 4
    assert values(ROW, *gone, forced_first(data=(0,)), dtype=dtype).tolist() == [0] + [GONE] * 3


WRONG = {
    "NoneType": lambda ids, logits: None,
    "ndarray of shape \\(3,\\)": lambda ids, logits: logits[1:],
    "list of shape \\(1, 4\\)": lambda ids, logits: [logits],
    "NaN or infinity": lambda ids, logits: logits * np.nan,
    "infinity; it must return 4 logits": lambda ids, logits: logits + np.inf,
    "beyond float32": lambda ids, logits: logits + 1e39,
    "values of type bool": lambda ids, logits: logits > 0,
    "values of type <U": lambda ids, logits: [str(x) for x in logits],
    "values of type complex128": lambda ids, logits: logits + 1j,
    "list of shape None": lambda ids, logits: [[1.0], [1.0, 2.0]],
}


@WAYS
@pytest.mark.parametrize("problem", WRONG)
def test_a_wrong_answer_is_an_error_that_names_the_function(problem, dtype):
    def my_function(ids, logits):
        return WRONG[problem](ids, logits)

    with pytest.raises(ParameterError, match=f"logits_processor my_function: .*{problem}") as error:
        values(ROW, custom(data=my_function), dtype=dtype)
    assert error.value.name == "logits_processor"


def test_an_object_that_can_be_called_is_named_by_its_class():
    class Mine:
        def __call__(self, ids, logits):
            return logits[:1]

    with pytest.raises(ParameterError, match="logits_processor Mine: it gave ndarray of shape"):
        values(ROW, custom(data=Mine()))


@WAYS
def test_processors_of_transformers_get_tensors(dtype):
    pytest.importorskip("torch")
    from transformers import LogitsProcessor, TopKLogitsWarper

    seen = []

    class Mine(LogitsProcessor):
        def __call__(self, input_ids, scores):
            seen.append((input_ids.tolist(), str(input_ids.dtype), str(scores.dtype)))
            return scores + scores.argmax(dim=-1, keepdim=True)

    got = values(ROW, custom(data=Mine()), prompt=[0], written=[2], dtype=dtype)
    assert got.tolist() == [3, 4, 5, 6]
    assert seen == [([[0, 2]], "torch.int64", "torch.float32")]
    got = values(ROW, custom(data=TopKLogitsWarper(2)), dtype=dtype)
    assert got.tolist() == [GONE, GONE, 2, 3]


# ── the ids that a function allows ───────────────────────────────────────────────────────────────
@WAYS
def test_it_keeps_what_the_function_allows(dtype):
    seen = []

    def follow(batch, ids):
        seen.append((batch, ids.tolist()))
        return [ids[-1], 3]

    got = values(ROW, prefix_allowed(data=follow), prompt=[0], written=[2], dtype=dtype)
    assert got.tolist() == [GONE, GONE, 2, 3] and seen == [(0, [0, 2])]
    rules = suppress(data=(2, 3)), prefix_allowed(data=follow)
    got = values(ROW, *rules, prompt=[0], written=[2], dtype=dtype)
    assert got.tolist() == [GONE, GONE, 0, 0]  # all that is allowed was removed


@WAYS
@pytest.mark.parametrize(("ids", "problem"), [
    ([], "it allowed no token at all, after 2 tokens"),
    ([1, 4], "it allowed token 4, and ids run from 0 to 3"),
    ([-1], "it allowed token -1")])
def test_what_it_may_not_allow(ids, problem, dtype):
    def mine(batch, text):
        return ids

    with pytest.raises(ParameterError, match=f"prefix_allowed_tokens_fn mine: {problem}") as error:
        values(ROW, prefix_allowed(data=mine), prompt=[0], written=[2], dtype=dtype)
    assert error.value.name == "prefix_allowed_tokens_fn"


@WAYS
def test_it_agrees_with_transformers(dtype):
    pytest.importorskip("torch")
    from transformers import PrefixConstrainedLogitsProcessor

    def near(batch, ids):
        return [(ids.tolist()[-1] + i) % 20 for i in range(3)]

    for i, (row, prompt, written) in enumerate(random_texts(100)):
        if i % 2:
            row[near(0, np.array(prompt + written))] = -np.inf
        got = values(row, prefix_allowed(data=near), prompt=prompt, written=written, dtype=dtype)
        want = by_transformers(PrefixConstrainedLogitsProcessor(near, 1), row, prompt + written)
        assert got.tolist() == want.tolist()


@pytest.mark.parametrize("answer", [
    lambda tensor: None, lambda tensor: tensor[0], lambda tensor: tensor[:, 1:],
    lambda tensor: tensor > 0, lambda tensor: tensor + float("inf"),
    lambda tensor: tensor.repeat(2, 1)])
def test_a_wrong_answer_of_a_processor_of_transformers_is_told(answer):
    pytest.importorskip("torch")
    from transformers import LogitsProcessor

    class Wrong(LogitsProcessor):
        def __call__(self, ids, logits):
            return answer(logits)

    with pytest.raises(ParameterError, match="logits_processor Wrong: it gave"):
        values(ROW, custom(data=Wrong()))


def test_a_function_may_give_a_tensor_of_any_kind():
    torch = pytest.importorskip("torch")
    kinds = [lambda x: torch.tensor(x, requires_grad=True), lambda x: torch.tensor(x).bfloat16(),
             lambda x: torch.tensor(x).long()]
    for kind in kinds:
        rule = custom(data=lambda ids, logits, kind=kind: kind(logits))
        assert values(ROW, rule).tolist() == ROW


@pytest.mark.parametrize("given", [None, 5, [True, False], np.ones(4, bool), [1.0], ["1"], "12",
                                   [None], [[1]], [float("nan")]])
def test_what_is_no_list_of_ids_is_not_read_as_one(given):
    with pytest.raises(ParameterError) as error:
        values(ROW, prefix_allowed(data=lambda batch, ids: given))
    assert error.value.name == "prefix_allowed_tokens_fn"
