"""What a caller may pass as a prompt, told apart: a text, ids, a chat, a request, or a batch.

A dict with `role` is a message, a dict with `prompt` or `messages` is a request. It knows no
tokenizer.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from operator import index
from typing import Any

from unspool.core.errors import PromptError
from unspool.core.values import shown


@dataclass(frozen=True)
class Request:
    """A prompt with its own parameters, for a batch in which each asks for something else."""

    prompt: Any
    params: Mapping[str, Any]

    def __init__(self, prompt: Any, **params: Any) -> None:
        object.__setattr__(self, "prompt", prompt)
        object.__setattr__(self, "params", params)


def items(given: Any) -> tuple[list[Any], bool]:
    """The prompts or requests of a call, and whether they are a batch."""
    return (list(given), True) if is_batch(given) else ([given], False)


def single(given: Any, params: Mapping[str, Any]) -> Request:
    """The request of a call that takes one. Raises PromptError for a batch."""
    if is_batch(given):
        raise PromptError(f"a list of {len(given)} prompts where one is asked for: pass one, or "
                          "the list to generate, stream, next or score")
    return one(given, params)


def one(given: Any, params: Mapping[str, Any]) -> Request:
    """A request; what it says itself wins over `params`. Raises PromptError."""
    if isinstance(given, Request):
        return Request(given.prompt, **{**params, **given.params})
    if isinstance(given, Mapping) and "role" not in given:
        rest = {k: v for k, v in given.items() if k not in ("prompt", "messages")}
        prompts = [given[k] for k in ("prompt", "messages") if k in given]
        if len(prompts) != 1:
            raise PromptError("a request needs one of 'prompt' and 'messages'; this one has "
                              f"{' and '.join(map(repr, given)) or 'neither'}")
        if isinstance(given.get("messages"), str):
            raise PromptError(f"messages={shown(given['messages'])} is a text: messages are a "
                              "list, each with role and content; a text goes under 'prompt'")
        return Request(prompts[0], **{**params, **rest})
    return Request(given, **params)


def is_batch(given: Any) -> bool:
    """True for a list of prompts; a list of ids or of messages is one prompt, [] an empty batch."""
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        return False
    kinds = {kind_of(item): item for item in given}
    if len(kinds) > 1 and kinds.keys() & {"a message", "an id"}:
        mixed = " with ".join(f"{kind} ({shown(item)})" for kind, item in sorted(kinds.items()))
        raise PromptError(f"a list mixes {mixed}: a prompt is a list of ids or of messages, a "
                          "batch a list of prompts")
    return not kinds.keys() & {"a message", "an id"}


def is_chat(prompt: Any) -> bool:
    """True for one message or a list of them."""
    return isinstance(prompt, Mapping) or (
        isinstance(prompt, list | tuple) and any(isinstance(item, Mapping) for item in prompt))


def whole(item: Any) -> int | None:
    """The whole number that an item is, of any library; None for others: arrays, truth values."""
    kind = str(getattr(item, "dtype", type(item).__name__))
    if getattr(item, "ndim", 0) or kind.endswith("bool"):
        return None
    try:
        return index(item)
    except TypeError:
        return None


def kind_of(item: Any) -> str:
    if isinstance(item, Mapping) and "role" in item:
        return "a message"
    if isinstance(item, Number) or (hasattr(item, "__index__") and getattr(item, "ndim", 0) == 0):
        return "an id"
    return "a prompt"
