"""Text to token ids and back, for one model. Knows no file format and no model."""
from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import tokenizers
from tokenizers import AddedToken, models, normalizers

from unspool.core.errors import PromptError, TemplateError
from unspool.text.chat import ChatTemplate
from unspool.text.incremental import Decoder
from unspool.text.messages import check_messages, check_text, check_variables
from unspool.text.panics import no_panic
from unspool.text.pieces import Pieces
from unspool.text.shield import LEAD, Shield


@dataclass(frozen=True)
class Facts:
    """What a model's files say about its tokenizer besides the vocabulary."""

    bos_id: int | None = None
    eos_ids: frozenset[int] = frozenset()
    named: Mapping[str, str] = field(default_factory=dict)  # for templates: {"eos_token": "</s>"}
    start_ids: tuple[int, ...] = ()  # put in front of every text
    end_ids: tuple[int, ...] = ()  # put behind an encoder's input; never behind a prompt
    chat_template: str | None = None
    pre: str = "default"  # the name of the rule that cuts text into words


class Tokenizer:
    """One model's tokenizer. It is never changed once built, so any number of threads may use it.

    Special tokens are matched on the raw text, also where a file asks for the normalised one.
    """

    def __init__(self, backend: tokenizers.Tokenizer, facts: Facts) -> None:
        self._backend = backend
        backend.no_truncation()
        backend.no_padding()
        added = backend.get_added_tokens_decoder()
        self.specials = frozenset(i for i, token in added.items() if token.special)
        _match_raw(backend, [added[i] for i in sorted(self.specials)])
        if isinstance(backend.model, models.BPE) and backend.model.dropout:
            backend.model.dropout = None  # a draw in training; here the same text, the same ids
        self._shield = Shield(added[i].content for i in self.specials)
        first = self._shield.normalizer()
        after = backend.normalizer
        backend.normalizer = first if after is None else normalizers.Sequence([first, after])
        self._tokens = {i: token for token, i in backend.get_vocab(with_added_tokens=True).items()}
        self._pieces = Pieces(backend, self._tokens)
        self.vocab_size: int = max(self._tokens, default=-1) + 1
        self.bos_id, self.eos_ids = facts.bos_id, facts.eos_ids
        self.start_ids, self.end_ids = facts.start_ids, facts.end_ids
        self._named = dict(facts.named)
        self.pre, self.chat_template = facts.pre, facts.chat_template
        self._template = None if facts.chat_template is None else ChatTemplate(facts.chat_template)

    def encode(self, text: str, *, specials: bool = False, start: bool = True) -> list[int]:
        """The ids of `text`. `specials`: control tokens written in it become control tokens.

        `start` puts the model's start tokens in front, if it has any; with `specials` a text that
        already begins with them gets no second ones. Raises PromptError for a lone surrogate, and
        for a character that the vocabulary cannot write (other programs leave it out).
        """
        self._check_writable(check_text(text, "the prompt"))
        if not specials:
            return [*(self.start_ids if start else ()), *self._ids(self._shield.hide(text))]
        return self._started(self._ids(text.replace(LEAD, self._shield.hide(LEAD))), start)

    def encode_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        start: bool = True,
        tools: Sequence[Mapping[str, Any]] | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> list[int]:
        """The ids of a conversation: the template's markers are control tokens, the words are not.

        `continue_final_message`: the ids end where the last message's content does, so that what
        follows goes on with it; no turn is opened. `start`: start tokens that the template did
        not write are put in front.

        Raises PromptError for messages that are not messages, TemplateError when the model has no
        template, or it refuses the messages, breaks its limits, leaves the last content out or
        fails.
        """
        opened = add_generation_prompt and not continue_final_message
        text = self._render(messages, opened, tools, variables, continue_final_message)
        self._check_writable(self._shield.show(text))
        return self._started(self._ids(text), start)

    def render_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[Mapping[str, Any]] | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> str:
        """The conversation as the template writes it, to be read by people; errors as above."""
        return self._shield.show(self._render(messages, add_generation_prompt, tools, variables))

    def decode(
        self, ids: Iterable[int], *, skip_special_tokens: bool = True, start: bool = True
    ) -> str:
        """The text of `ids`; bytes that never become a character are U+FFFD, one per byte.

        `start`: the ids begin a text, so a tokenizer that marks word starts drops the first
        space. Raises PromptError for an id outside the vocabulary.
        """
        decoder = self.decoder(start=start)
        data = b"".join(self.piece(i, skip_special_tokens=skip_special_tokens) for i in ids)
        return decoder.feed(data) + decoder.flush()

    def decoder(self, *, start: bool = True) -> Decoder:
        """A decoder to be fed with pieces, one by one, whose deltas join to `decode`."""
        return Decoder(drop_space=start and self._pieces.drops_space)

    def piece(self, token_id: int, *, skip_special_tokens: bool = True) -> bytes:
        """The exact bytes a token adds in the middle of a text; b"" for a skipped special."""
        if not 0 <= token_id < self.vocab_size:
            raise PromptError(
                f"token id {token_id} is outside the vocabulary; ids run from 0 to "
                f"{self.vocab_size - 1}"
            )
        if skip_special_tokens and token_id in self.specials:
            return b""
        return self._pieces[token_id]

    def label(self, token_id: int) -> str:
        """A printable name for charts: ` blue`, `\\n`, `<|im_end|>`, `⟨F0 9F⟩` for part of one."""
        data = self.piece(token_id, skip_special_tokens=False)
        return "".join(map(_printable, data.decode("utf-8", "surrogateescape"))).replace("⟩⟨", " ")

    def token_id(self, text: str) -> int | None:
        """The id of a token by its name in the vocabulary, or None."""
        found: int | None = self._backend.token_to_id(text)
        return found

    @cached_property
    def digest(self) -> str:
        """SHA-256, in hex, of all that decides which ids a text gets."""
        state = f"{list(self.start_ids)}{self._backend.to_str()}"
        return hashlib.sha256(state.encode()).hexdigest()

    def close(self) -> None:
        """Ends the process that renders the chat template, if one was needed."""
        if self._template is not None:
            self._template.close()

    def _ids(self, text: str) -> list[int]:
        try:
            with no_panic():
                ids: list[int] = self._backend.encode(text, add_special_tokens=False).ids
        except Exception as error:
            raise PromptError(f"the tokenizer cannot encode this text: {error}") from error
        return ids

    def _check_writable(self, text: str) -> None:
        bad = self._pieces.unwritable
        if len(data := text.encode()) == len(data.translate(None, bad)):
            return
        place = next(i for i, char in enumerate(text) if not set(char.encode()).isdisjoint(bad))
        raise PromptError(
            f"character U+{ord(text[place]):04X} at position {place} cannot be written in this "
            f"model's vocabulary; remove it"
        )

    def _started(self, ids: list[int], start: bool) -> list[int]:
        begins = tuple(ids[: len(self.start_ids)]) == self.start_ids
        return ids if begins or not start else [*self.start_ids, *ids]

    def _render(
        self,
        messages: Sequence[Mapping[str, Any]],
        add_generation_prompt: bool,
        tools: Sequence[Mapping[str, Any]] | None,
        variables: Mapping[str, Any] | None,
        continued: bool = False,
    ) -> str:
        if self._template is None:
            raise TemplateError(
                "this model has no chat template; pass the prompt as a string instead of messages"
            )
        typed = {**check_variables(variables or {}), "messages": check_messages(messages)}
        if tools is not None:
            typed["tools"] = check_variables({"tools": list(tools)})["tools"]
        hidden = {name: self._hidden(value) for name, value in typed.items()}
        if continued:
            hidden["messages"][-1] = self._marked(hidden["messages"][-1])
        text = self._template.render(
            {**hidden, "add_generation_prompt": bool(add_generation_prompt), **self._named}
        )
        return self._cut(text) if continued else text

    def _marked(self, message: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(message.get("content"), str):
            raise PromptError("the last message has no content to go on with; give it a string")
        return {**message, "content": message["content"] + self._shield.mark}

    def _cut(self, text: str) -> str:
        """A conversation up to the mark behind its last content."""
        before, mark, _ = text.rpartition(self._shield.mark)
        if not mark:
            raise TemplateError(
                "the model's chat template does not write the last message's content, so it cannot "
                "be continued; let the template open the answer's turn instead"
            )
        return before.replace(mark, "")

    def _hidden(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._shield.hide(value)
        if isinstance(value, dict):
            return {self._hidden(key): self._hidden(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._hidden(item) for item in value]
        return value


def _match_raw(backend: tokenizers.Tokenizer, tokens: list[AddedToken]) -> None:
    """Has the special tokens matched before the normaliser, where `Shield` hides typed ones."""
    for token in tokens:
        if token.normalized:
            raw = AddedToken(
                token.content,
                single_word=token.single_word,
                lstrip=token.lstrip,
                rstrip=token.rstrip,
                normalized=False,
                special=True,
            )
            backend.add_special_tokens([raw])


def _printable(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"⟨{code - 0xDC00:02X}⟩"
    return char if char.isprintable() else char.encode("unicode_escape").decode()
