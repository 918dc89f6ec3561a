"""What comes back: tokens with their facts, choices, and the output of one request."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import exp, isfinite
from operator import index as whole
from typing import TYPE_CHECKING, Any

from unspool.core.errors import ParameterError
from unspool.core.params import plain
from unspool.core.records import Record, Usage

if TYPE_CHECKING:
    from unspool.llm.why import Why


@dataclass(frozen=True, slots=True)
class Ranked:
    """One token of a distribution. `rank` 1 is the likeliest."""

    id: int
    text: str
    prob: float
    logprob: float
    rank: int

    def json(self) -> dict[str, Any]:
        return {"id": self.id, "text": self.text, "prob": self.prob,
                "logprob": finite(self.logprob), "rank": self.rank}


@dataclass(frozen=True, slots=True)
class Token:
    """A written token. `logprob` is raw, `processed_logprob` after the rules; natural logs.

    `bytes` is what it adds to the text; `text` the same as a string, special tokens by name and
    part of a character as `⟨F0 9F⟩`.
    `rank` 1 is the likeliest before the rules. `top`: the likeliest tokens at its place, raw, when
    `logprobs` asked for them.
    """

    id: int
    text: str
    bytes: bytes
    logprob: float
    processed_logprob: float
    rank: int
    top: tuple[Ranked, ...] = ()

    @property
    def prob(self) -> float:
        return exp(self.logprob)

    def json(self) -> dict[str, Any]:
        out = {"id": self.id, "text": self.text, "logprob": finite(self.logprob),
               "processed_logprob": finite(self.processed_logprob), "rank": self.rank}
        return {**out, "top": [t.json() for t in self.top]} if self.top else out


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer. `logprob`: sum of the raw log-probabilities; `score`: what ranked it; `whys`: a
    record for each token, when `why` asked for them."""

    text: str
    tokens: tuple[Token, ...]
    finish_reason: str
    stop_reason: str | int | None
    score: float
    index: int = 0
    whys: tuple[Why, ...] = field(default=(), repr=False, compare=False)

    @property
    def token_ids(self) -> list[int]:
        return [t.id for t in self.tokens]

    @property
    def logprob(self) -> float:
        return sum((t.logprob for t in self.tokens), 0.0)

    def why(self, position: int) -> Why:
        """The record of one written token, counted from 0, or from the end by negative numbers.

        Raises ParameterError when the request did not ask for records, IndexError for a token that
        was not written.
        """
        if self.tokens and not self.whys:
            raise ParameterError(f"why({position}): this request kept no records; pass why=True "
                                 "with the prompt", "why")
        count = len(self.tokens)
        if not -count <= whole(position) < count:
            raise IndexError(f"why({position}): {count} tokens were written")
        return self.whys[position]

    def json(self, tokens: bool = False) -> dict[str, Any]:
        out: dict[str, Any] = {"text": self.text, "token_ids": self.token_ids,
                               "finish_reason": self.finish_reason,
                               "stop_reason": self.stop_reason,
                               "logprob": finite(self.logprob), "score": finite(self.score)}
        if tokens:
            out["tokens"] = [t.json() for t in self.tokens]
        for token, why in zip(out.get("tokens", ()), self.whys, strict=False):
            token["why"] = why.json()
        return out


@dataclass(frozen=True, slots=True, repr=False)
class Output(Sequence[Choice]):
    """The answer to one request: its choices, best first for searches, else by number.

    The first choice's facts are the output's own. `error` is what ended it, None when nothing did;
    a request that never began has no choices, and asking for its text raises the error.
    """

    prompt: Any
    model: str
    numerics: str
    choices: tuple[Choice, ...]
    usage: Usage
    params: dict[str, Any]
    notes: tuple[str, ...] = ()
    seed: int = 0
    error: Exception | None = None
    trace: tuple[Record, ...] = ()

    def __repr__(self) -> str:
        if not self.choices:
            return f"Output(error={self.error!r})"
        texts = ", ".join(repr(choice.text) for choice in self.choices)
        return f"Output({texts}; {self.finish_reason}, {len(self.tokens)} tokens)"

    def __len__(self) -> int:
        return len(self.choices)

    def __getitem__(self, index: Any) -> Any:
        return self.choices[index]

    def __iter__(self) -> Iterator[Choice]:
        return iter(self.choices)

    @property
    def first(self) -> Choice:
        if not self.choices:
            raise self.error or IndexError("this output has no choices")
        return self.choices[0]

    @property
    def text(self) -> str:
        return self.first.text

    @property
    def tokens(self) -> tuple[Token, ...]:
        return self.first.tokens

    @property
    def token_ids(self) -> list[int]:
        return self.first.token_ids

    def why(self, position: int) -> Why:
        """The record of one token of the first choice, see `Choice.why`."""
        return self.first.why(position)

    @property
    def finish_reason(self) -> str:
        return self.first.finish_reason if self.choices else "error"

    @property
    def stop_reason(self) -> str | int | None:
        return self.first.stop_reason if self.choices else None

    @property
    def logprob(self) -> float:
        return self.first.logprob

    @property
    def score(self) -> float:
        return self.first.score

    def to_json(self) -> dict[str, Any]:
        """The object that `run --json` prints. With `logprobs` or `why` each token's facts too."""
        out: dict[str, Any] = {"prompt": strict(self.prompt), "model": self.model,
                               "numerics": self.numerics}
        tokens = self.params.get("logprobs") is not None or bool(self.params.get("why"))
        if len(self.choices) > 1:
            out["choices"] = [choice.json(tokens) for choice in self.choices]
        elif self.choices:
            out.update(self.first.json(tokens))
        if self.error is not None:
            out |= {"finish_reason": self.finish_reason, "error": str(self.error)}
        return {**out, "usage": self.usage.json(), "params": strict(self.params),
                "notes": list(self.notes)}


def finite(value: float) -> float | None:
    """JSON has no infinity: a removed token's log-probability is null there."""
    return value if isfinite(value) else None


def strict(value: Any) -> Any:
    """What a caller passed, as JSON can write it; other objects and NaN by their repr."""
    value = plain(value)
    if isinstance(value, list):
        return [strict(item) for item in value]
    if isinstance(value, dict):
        return {key: strict(item) for key, item in value.items()}
    return value if not isinstance(value, float) or isfinite(value) else repr(value)
