"""What the rest of the room needs to know of a loaded model: its words, its limits, its defaults.

Prompts become ids here, and ids become bytes.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from unspool.core.errors import PromptError
from unspool.core.params import Params
from unspool.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Facts:
    """`vocab`: ids that exist; `context`: most tokens of a text; `ends`: the model's end tokens;
    `defaults`: its own generation config."""

    name: str
    numerics: str
    vocab: int
    context: int
    tokenizer: Tokenizer | None = None
    ends: frozenset[int] = frozenset()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def needs_text(self, what: str) -> Tokenizer:
        if self.tokenizer is None:
            raise PromptError(f"{what}: this model was loaded without a tokenizer; pass token ids "
                              "and read token_ids, or put its tokenizer.json beside it")
        return self.tokenizer

    def encode(self, prompt: Any, params: Params) -> list[int]:
        """The ids of a prompt: a string, ids, one message, or messages."""
        if isinstance(prompt, str):
            start = params.add_special_tokens is not False
            ids = self.needs_text("a text prompt").encode(prompt, specials=True, start=start)
        elif isinstance(prompt, Mapping):
            ids = self.chat([prompt], params)
        elif isinstance(prompt, list | tuple) and prompt and isinstance(prompt[0], Mapping):
            ids = self.chat(list(prompt), params)
        else:
            ids = self.check(prompt)
        if not ids:
            raise PromptError("the prompt is empty: it needs at least one token, and this "
                              "tokenizer adds none of its own; write something")
        if len(ids) > self.context:
            raise PromptError(f"the prompt has {len(ids)} tokens and the model's context "
                              f"{self.context}: shorten the prompt")
        return ids

    def chat(self, messages: list[Any], params: Params) -> list[int]:
        tokenizer = self.needs_text("chat messages")
        going_on = bool(params.continue_final_message)
        opened = params.add_generation_prompt is not False and not going_on
        ids = tokenizer.encode_chat(messages, add_generation_prompt=opened)
        if going_on:  # the turn's closing marker and what follows it are not part of the text
            while ids and ids[-1] in tokenizer.specials | whitespace(tokenizer, ids[-1]):
                ids.pop()
        return ids

    def check(self, prompt: Any) -> list[int]:
        """Token ids as given, each an integer of the vocabulary."""
        try:
            items = list(prompt)
        except TypeError:
            raise PromptError(f"a prompt is a string, a list of ids or chat messages, not "
                              f"{type(prompt).__name__}") from None
        ids = []
        for item in items:
            if isinstance(item, bool | str) or not hasattr(item, "__index__"):
                raise PromptError(f"{item!r} is not a token id: ids are whole numbers")
            ids.append(item.__index__())
            if not 0 <= ids[-1] < self.vocab:
                raise PromptError(f"token id {ids[-1]} is outside the vocabulary: ids run from 0 "
                                  f"to {self.vocab - 1}")
        return ids

    def label(self, token: int) -> str:
        """A printable name of a token; its id without a tokenizer."""
        return str(token) if self.tokenizer is None else self.tokenizer.label(token)

    def piece(self, skip_special_tokens: bool = True) -> Callable[[int], bytes]:
        """The bytes that a token adds to a text; none without a tokenizer."""
        tokenizer = self.tokenizer
        if tokenizer is None:
            return lambda token: b""
        if skip_special_tokens:
            return tokenizer.piece
        return lambda token: tokenizer.piece(token, skip_special_tokens=False)


def whitespace(tokenizer: Tokenizer, token: int) -> frozenset[int]:
    return frozenset({token}) if not tokenizer.piece(token).strip() else frozenset()
