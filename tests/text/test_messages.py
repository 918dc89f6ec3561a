"""What is not a conversation is refused in one line that says where."""
from __future__ import annotations

from typing import Any

import pytest

from unspool.core.errors import PromptError
from unspool.text.messages import check_messages, check_text, check_variables


def user(content: Any, **more: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": content, **more}]


def test_text_parts_become_one_string() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert check_messages(user(parts)) == user("a\nb")


def test_other_keys_reach_the_template() -> None:
    assert check_messages(user("a", name="Ann")) == user("a", name="Ann")
    calls = [{"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}]
    assert check_messages(calls) == calls


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ("hi", "messages is str"),
        ({"role": "user", "content": "a"}, "messages is dict"),
        ([], "messages is empty"),
        (["hi"], "messages[0] is str"),
        ([{"content": "a"}], "messages[0] has role None; the roles are system"),
        ([*user("a"), {"role": "wizard", "content": "a"}], "messages[1] has role 'wizard'"),
        ([{"role": ["user"], "content": "a"}], "messages[0] has role ['user']"),
        ([{"role": "user"}], "messages[0] has no content"),
        (user(3), "messages[0] content is int"),
        (user([{"type": "image_url"}]), "messages[0] content[0] is of type 'image_url'"),
        (user(["a"]), "messages[0] content[0] is of type 'str'"),
        (user([{"type": "text"}]), "messages[0] content[0] text is NoneType"),
        (user("ab\ud83dc"), "U+D83D at position 2"),
        (user("a", name="x\udc00"), "U+DC00 at position 1"),
        (user("a", extra={"deep": ["\udc00"]}), "U+DC00 at position 0"),
        (user("a", extra=float("nan")), "plain JSON"),
        (user("a", extra=object()), "plain JSON"),
    ],
)
def test_a_fault_is_named(messages: Any, words: str) -> None:
    with pytest.raises(PromptError) as caught:
        check_messages(messages)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_self_containing_message_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(PromptError, match="plain JSON"):
        check_messages(user("a", extra=loop))


@pytest.mark.parametrize(
    "variables",
    [
        {"chat_template": "{{ 1 }}"},
        {"chat_template_kwargs": {"chat_template": "{{ 1 }}"}},
        {"a": [{"b": {"chat_template": "{{ 1 }}"}}]},
    ],
)
def test_a_request_brings_no_template(variables: dict[str, Any]) -> None:
    with pytest.raises(PromptError, match="may not bring a chat_template"):
        check_variables(variables)


def test_variables_do_not_replace_the_conversation() -> None:
    with pytest.raises(PromptError, match="'messages' is set by the conversation"):
        check_variables({"messages": []})


def test_a_prompt_that_is_no_text() -> None:
    with pytest.raises(PromptError, match="the prompt is int"):
        check_text(3, "the prompt")
