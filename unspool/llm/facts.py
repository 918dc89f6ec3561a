"""What the rest of the room needs to know of a loaded model: its words, its limits, its defaults.

Prompts become ids here, and ids become bytes.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set, Sized
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

from unspool.constraints import Vocabulary
from unspool.core.errors import ParameterError, PromptError
from unspool.core.params import Params
from unspool.core.values import shown
from unspool.llm.prompts import is_chat, whole
from unspool.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Partner:
    """Another loaded model: its facts, and what the engine reads it with."""

    facts: Facts
    runner: Any


@dataclass(frozen=True)
class Facts:
    """`vocab`: ids that exist; `context`: most tokens of a text; `ends`: the model's end tokens;
    `defaults`: its own generation config; `layers`: how many inner layers can be read; `width`: of
    a hidden state, 0 where they cannot be read; `tied`: its head is its embeddings. `token_bytes`:
    what it remembers of a token takes so much of the machine's memory (0: not known, or nothing);
    `reserve`: each text takes it for so many tokens at once. `partner`: the model that a
    parameter's value names, loaded if need be."""

    name: str
    numerics: str
    vocab: int
    context: int
    tokenizer: Tokenizer | None = None
    ends: frozenset[int] = frozenset()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    layers: int = 0
    width: int = 0
    tied: bool = False
    token_bytes: int = 0
    reserve: int = 0
    partner: Callable[[str, Any], Partner] | None = field(default=None, compare=False, repr=False)

    def needs_text(self, what: str) -> Tokenizer:
        if self.tokenizer is None:
            raise PromptError(f"{what}: this model was loaded without a tokenizer; pass token ids "
                              "and read token_ids, or put its tokenizer.json beside it")
        return self.tokenizer

    def encode(self, prompt: Any, params: Params) -> list[int]:
        """The ids of a prompt: a string, ids, one message, or messages.

        Raises PromptError, and ParameterError for a parameter that this kind of prompt has no
        use for.
        """
        start = params.add_special_tokens is not False
        if is_chat(prompt):
            ids = self.chat(prompt, params, start)
        else:
            refuse(params, "add_generation_prompt", "continue_final_message", kind="chat messages")
            if isinstance(prompt, str):
                ids = self.words(prompt, start)
            else:
                ids = self.check(prompt)
                if params.add_special_tokens:
                    refuse(params, "add_special_tokens", kind="a text or chat messages")
        if not ids:
            raise PromptError("the prompt is empty: it needs at least one token, and no start "
                              "token is put before it; write something")
        if len(ids) > self.context:
            raise PromptError(f"the prompt has {len(ids)} tokens and the model's context "
                              f"{self.context}: shorten the prompt")
        return ids

    def words(self, text: str, start: bool = True) -> list[int]:
        """The ids of a text; control tokens written in it are control tokens."""
        return self.known(self.needs_text("a text").encode(text, specials=True, start=start))

    def chat(self, messages: Any, params: Params, start: bool) -> list[int]:
        return self.known(self.needs_text("chat messages").encode_chat(
            [messages] if isinstance(messages, Mapping) else messages,
            add_generation_prompt=params.add_generation_prompt is not False,
            continue_final_message=bool(params.continue_final_message), start=start))

    def known(self, ids: list[int]) -> list[int]:
        """Ids from the tokenizer, whose vocabulary may be larger than the model's."""
        for token in ids:
            if token >= self.vocab:
                raise PromptError(f"{self.text(token)!r} is token {token}, which this model does "
                                  f"not have (ids run from 0 to {self.vocab - 1}): take it out")
        return ids

    def check(self, prompt: Any) -> list[int]:
        """Token ids as given, each an integer of the vocabulary."""
        # A set has no order, and bytes are no ids though they are whole numbers.
        unfit = isinstance(prompt, str | bytes | bytearray | memoryview | Mapping | Set)
        if unfit or not isinstance(prompt, Iterable) or getattr(prompt, "ndim", 1) == 0:
            raise PromptError(f"{shown(prompt)} is {type(prompt).__name__}: a prompt is a string, "
                              "a list of ids or chat messages")
        # What may never end is read until it is too long.
        items = prompt if isinstance(prompt, Sized) else islice(prompt, self.context + 1)
        ids = []
        for item in items:
            number = whole(item)
            if number is None:
                raise PromptError(f"{shown(item)} is not a token id: ids are whole numbers")
            if not 0 <= number < self.vocab:
                raise PromptError(f"token id {shown(number)} is outside the vocabulary: ids run "
                                  f"from 0 to {self.vocab - 1}")
            ids.append(number)
        return ids

    def text(self, token: int) -> str:
        """The text of a token, specials by name; part of a character as ⟨F0 9F⟩; ids as digits."""
        if self.tokenizer is None:
            return str(token)
        try:
            return self.tokenizer.piece(token, skip_special_tokens=False).decode()
        except UnicodeDecodeError:
            return self.tokenizer.label(token)

    def piece(self, skip_special_tokens: bool = True) -> Callable[[int], bytes]:
        """The bytes that a token adds to a text; none without a tokenizer."""
        tokenizer = self.tokenizer
        if tokenizer is None:
            return lambda token: b""
        if skip_special_tokens:
            return tokenizer.piece
        return lambda token: tokenizer.piece(token, skip_special_tokens=False)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The bytes that each token adds to a text: none for specials and for ids that the
        tokenizer does not know."""
        known = 0 if self.tokenizer is None else min(self.vocab, self.tokenizer.vocab_size)
        piece = self.piece()
        return Vocabulary([piece(i) if i < known else b"" for i in range(self.vocab)])


def refuse(params: Params, *names: str, kind: str) -> None:
    """No parameter is passed over: those that another kind of prompt is needed for are refused."""
    for name in names:
        if params.active(name) is not None:
            raise ParameterError(f"{name}={getattr(params, name)} is for {kind}, which this prompt "
                                 "is not: leave it out", name)
