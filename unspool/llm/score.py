"""How likely a model finds a given text, token by token."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from unspool.llm.results import Output, Token, finite


@dataclass(frozen=True, slots=True)
class ScoredToken:
    """`logprob` and `rank` are None for a first token that nothing stands before."""

    id: int
    text: str
    logprob: float | None
    rank: int | None

    def json(self) -> dict[str, Any]:
        logprob = None if self.logprob is None else finite(self.logprob)
        return {"id": self.id, "text": self.text, "logprob": logprob, "rank": self.rank}


@dataclass(frozen=True, slots=True)
class Score:
    """`logprob`: sum over the scored tokens, natural log. `bytes`: what they add to the text."""

    tokens: tuple[ScoredToken, ...]
    bytes: int
    output: Output

    @property
    def scored(self) -> int:
        return sum(t.logprob is not None for t in self.tokens)

    @property
    def logprob(self) -> float:
        return sum(t.logprob for t in self.tokens if t.logprob is not None)

    @property
    def perplexity(self) -> float:
        """exp of the mean negative log-probability per scored token; NaN when none was."""
        return math.exp(-self.logprob / self.scored) if self.scored else math.nan

    @property
    def bits_per_byte(self) -> float:
        return -self.logprob / math.log(2) / self.bytes if self.bytes else math.nan

    def to_json(self) -> dict[str, Any]:
        return {"tokens": [t.json() for t in self.tokens], "logprob": finite(self.logprob),
                "perplexity": finite(self.perplexity), "bits_per_byte": finite(self.bits_per_byte)}


def score_of(output: Output, first: Token | None) -> Score:
    """`first`: the token before which nothing stands, shown and not counted."""
    tokens = [ScoredToken(t.id, t.text, t.logprob, t.rank) for t in output.tokens]
    if first is not None:
        tokens.insert(0, ScoredToken(first.id, first.text, None, None))
    return Score(tuple(tokens), sum(len(t.bytes) for t in output.tokens), output)
