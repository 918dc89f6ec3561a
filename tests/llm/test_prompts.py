import numpy as np
import pytest

from unspool.core.errors import PromptError
from unspool.llm.prompts import Request, is_batch, is_chat, items, one, single

HI = {"role": "user", "content": "hi"}


@pytest.mark.parametrize(
    "prompt",
    ["text", "", b"bytes", HI, [HI], [HI, HI], [1, 2], (1, 2), [True], [1.5], [np.int64(3)],
     np.array([1, 2]), Request("a"), {"prompt": "a"}, {"messages": [HI]}, 7, None],
    ids=repr,
)  # fmt: skip
def test_one_prompt(prompt):
    assert not is_batch(prompt)
    found, batch = items(prompt)
    assert found[0] is prompt and not batch


@pytest.mark.parametrize(
    "prompts",
    [[], (), ["a"], ["a", "b"], [[1, 2], [3]], [[]], [""], [[HI]], [Request("a"), "b"],
     [{"prompt": "a"}, {"messages": [HI]}, [1], "x"], [np.array([1, 2]), np.array([3])]],
    ids=repr,
)  # fmt: skip
def test_a_batch(prompts):
    found, batch = items(prompts)
    assert batch and len(found) == len(prompts)
    assert all(a is b for a, b in zip(found, prompts, strict=True))


@pytest.mark.parametrize(
    ("mixed", "said"),
    [
        ([HI, {"prompt": "a"}], "role"),
        ([1, "x"], "'x'"),
        ([1, [2]], "[2]"),
        (["a", HI], "'a'"),
        ([1, HI], "role"),
    ],
)
def test_what_a_list_may_not_mix(mixed, said):
    with pytest.raises(PromptError, match="a list mixes") as error:
        is_batch(mixed)
    assert said in str(error.value)


def test_what_a_request_says_itself_wins():
    assert single("a", {"seed": 1}) == one("a", {"seed": 1})
    assert one("a", {"seed": 1}).params == {"seed": 1}
    assert one(Request("a", seed=2), {"seed": 1, "n": 3}).params == {"seed": 2, "n": 3}
    found = one({"prompt": "a", "seed": 2}, {"seed": 1, "n": 3})
    assert (found.prompt, found.params) == ("a", {"seed": 2, "n": 3})
    assert one({"messages": [HI]}, {}).prompt == [HI]
    assert one(HI, {}).prompt is HI


@pytest.mark.parametrize("wrong", [{}, {"text": "a"}, {"prompt": "a", "messages": [HI]}])
def test_a_request_has_one_prompt(wrong):
    with pytest.raises(PromptError, match="one of 'prompt' and 'messages'"):
        one(wrong, {})


@pytest.mark.parametrize("batch", [["a", "b"], [], [[1], [2]]])
def test_a_batch_where_one_is_asked_for(batch):
    with pytest.raises(PromptError, match=f"a list of {len(batch)} prompts where one"):
        single(batch, {})


def test_chats_are_told_apart():
    assert is_chat(HI) and is_chat([HI]) and is_chat([HI, "x"])
    assert not any(map(is_chat, ["a", [1], [], np.array([1]), None]))
