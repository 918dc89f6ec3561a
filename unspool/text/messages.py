"""Checks chat messages and the texts of a prompt. Knows neither tokens nor templates."""
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from unspool.core.errors import PromptError

ROLES = ("system", "developer", "user", "assistant", "tool", "function", "ipython")
_RESERVED = ("messages", "add_generation_prompt", "bos_token", "eos_token", "unk_token")


def check_text(text: object, what: str) -> str:
    """`text` if it is a string that UTF-8 can write; PromptError names the first bad position."""
    if not isinstance(text, str):
        raise PromptError(f"{what} is {type(text).__name__}; it must be a string")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise PromptError(
            f"{what} has a lone surrogate U+{ord(text[error.start]):04X} at position "
            f"{error.start}; half a character cannot be encoded: replace or remove it"
        ) from None
    return text


def check_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages as plain data, every content one string (text parts joined by line breaks).

    Raises PromptError naming the message and what is wrong with it.
    """
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        kind = type(messages).__name__
        raise PromptError(f"messages is {kind}; it must be a list of messages with a role")
    if not messages:
        raise PromptError("messages is empty; a conversation needs at least one message")
    return [_message(message, f"messages[{i}]") for i, message in enumerate(messages)]


def check_variables(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Further template variables as plain data. A template among them, at any depth, is refused.

    Raises PromptError for a name that the conversation itself sets.
    """
    for name in variables:
        if name in _RESERVED:
            raise PromptError(f"template variable {name!r} is set by the conversation; drop it")
    plain: dict[str, Any] = _plain(variables, "template variables")
    _refuse_template(plain)
    return plain


def _message(message: object, where: str) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise PromptError(f"{where} is {type(message).__name__}; it must have role and content")
    role = message.get("role")
    if role not in ROLES:
        raise PromptError(f"{where} has role {role!r}; the roles are {', '.join(ROLES)}")
    content = message.get("content")
    if content is None and "tool_calls" not in message:
        raise PromptError(f"{where} has no content; give it a string")
    if content is not None:
        message = {**message, "content": _content(content, f"{where} content")}
    plain: dict[str, Any] = _plain(message, where)
    return plain


def _content(content: object, where: str) -> str:
    if isinstance(content, str):
        return check_text(content, where)
    if not isinstance(content, list | tuple):
        kind = type(content).__name__
        raise PromptError(f"{where} is {kind}; it must be a string or a list of text parts")
    return "\n".join(_part(part, f"{where}[{i}]") for i, part in enumerate(content))


def _part(part: object, where: str) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
    if kind != "text" or not isinstance(part, Mapping):
        raise PromptError(f'{where} is of type {kind!r}; this model reads parts of type "text"')
    return check_text(part.get("text"), f"{where} text")


def _plain(value: Mapping[str, Any], where: str) -> Any:
    """A deep copy as JSON data, so that a template can reach nothing but text and numbers."""
    try:
        plain = json.loads(json.dumps(dict(value), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise PromptError(f"{where} must be plain JSON data: {error}") from None
    _check_texts(plain, where)
    return plain


def _check_texts(value: Any, where: str) -> None:
    if isinstance(value, str):
        check_text(value, where)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_texts(item, f"{where}[{index}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_texts(key, f"a key of {where}")
            _check_texts(item, f"{where}[{key!r}]")


def _refuse_template(value: Any) -> None:
    if isinstance(value, dict):
        if "chat_template" in value:
            raise PromptError("a request may not bring a chat_template; the model's own is used")
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            _refuse_template(item)
