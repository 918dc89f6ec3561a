"""What a caller may pass as a prompt, told apart: a text, ids, a chat, a request, or a batch.

A dict with `role` is a message, a dict with `prompt` or `messages` is a request. It knows no
tokenizer.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unspool.core.errors import PromptError


@dataclass(frozen=True)
class Request:
    """A prompt with its own parameters, for a batch in which each asks for something else."""

    prompt: Any
    params: Mapping[str, Any]

    def __init__(self, prompt: Any, **params: Any) -> None:
        object.__setattr__(self, "prompt", prompt)
        object.__setattr__(self, "params", params)


def requests(given: Any, params: Mapping[str, Any]) -> tuple[list[Request], bool]:
    """The requests of a call, and whether it was a batch. A request's own parameters win."""
    if is_batch(given):
        return [one(item, params) for item in given], True
    return [one(given, params)], False


def one(given: Any, params: Mapping[str, Any]) -> Request:
    if isinstance(given, Request):
        return Request(given.prompt, **{**params, **given.params})
    if isinstance(given, Mapping) and "role" not in given:
        rest = {k: v for k, v in given.items() if k not in ("prompt", "messages")}
        prompts = [given[k] for k in ("prompt", "messages") if k in given]
        if len(prompts) != 1:
            raise PromptError("a request needs one of 'prompt' and 'messages'; this one has "
                              f"{' and '.join(map(repr, given)) or 'neither'}")
        return Request(prompts[0], **{**params, **rest})
    return Request(given, **params)


def is_batch(given: Any) -> bool:
    """True for a list of prompts; a list of ids or of messages is one prompt, [] an empty batch."""
    if isinstance(given, str | Mapping | Request | bytes) or not isinstance(given, Sequence):
        return False
    kinds = {kind_of(item) for item in given}
    if kinds & {"message", "id"} and len(kinds) > 1:
        raise PromptError(f"a list mixes {' with '.join(sorted(kinds))}: a prompt is a list of ids "
                          "or of messages, a batch a list of prompts")
    return not kinds & {"message", "id"}


def kind_of(item: Any) -> str:
    if isinstance(item, Mapping) and "role" in item:
        return "message"
    if hasattr(item, "__index__"):
        return "id"
    return "prompt"
