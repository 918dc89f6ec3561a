"""How likely a model finds a given text, token by token."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from unspool.core.errors import PromptError
from unspool.core.params import Params
from unspool.llm.facts import Facts
from unspool.llm.prompts import is_chat
from unspool.llm.results import Output, finite


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
        return sum((t.logprob for t in self.tokens if t.logprob is not None), 0.0)

    @property
    def perplexity(self) -> float:
        """exp of the mean negative log-probability per scored token; NaN when none was."""
        if not self.scored:
            return math.nan
        mean = -self.logprob / self.scored
        return math.exp(mean) if mean < 709 else math.inf  # beyond, exp overflows

    @property
    def bits_per_byte(self) -> float:
        return -self.logprob / math.log(2) / self.bytes if self.bytes else math.nan

    def to_json(self) -> dict[str, Any]:
        return {"tokens": [t.json() for t in self.tokens], "logprob": finite(self.logprob),
                "perplexity": finite(self.perplexity), "bits_per_byte": finite(self.bits_per_byte)}


def parts(facts: Facts, text: Any, given: Any
          ) -> tuple[list[int], list[int], ScoredToken | None]:
    """The ids that stand before, those to score, and the token that has nothing before it.

    There is such a token when there is neither `given` nor a start token: the text's first.

    Raises PromptError for a text that is neither a string nor ids, is empty, or does not fit.
    """
    if isinstance(text, str):
        ids = facts.words(text, start=given is None)
        start = 0 if given is not None else len(facts.needs_text("a text").start_ids)
    elif is_chat(text):
        raise PromptError("only a text or a list of ids can be scored; pass chat messages as "
                          "`given` and the answer as the text")
    else:
        ids, start = facts.check(text), 0
    before, ids = ids[:start], ids[start:]
    if not ids:
        raise PromptError("there is nothing to score: the text is empty")
    if given is not None:
        before = facts.encode(given, Params())
    if len(before) + len(ids) > facts.context:
        raise PromptError(f"the text has {len(before) + len(ids)} tokens and the model's context "
                          f"{facts.context}: score it in parts")
    if before:
        return before, ids, None
    return ids[:1], ids[1:], ScoredToken(ids[0], facts.text(ids[0]), None, None)


def score_of(output: Output, first: ScoredToken | None) -> Score:
    """`first`: the token before which nothing stands, shown and not counted."""
    tokens = [ScoredToken(t.id, t.text, t.logprob, t.rank) for t in output.tokens]
    if first is not None:
        tokens.insert(0, first)
    return Score(tuple(tokens), sum(len(t.bytes) for t in output.tokens), output)
