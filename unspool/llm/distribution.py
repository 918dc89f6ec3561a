"""A next-token distribution, whole: likeliest tokens, any token's probability, entropy, a chart."""
from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unspool.core.errors import ParameterError, PromptError
from unspool.core.values import shown
from unspool.kernels.reading.plain import Floats, top_ids
from unspool.llm.facts import Facts
from unspool.llm.prompts import is_chat, whole
from unspool.llm.results import Ranked, strict

if TYPE_CHECKING:
    from unspool.engine.row import Row


@dataclass(frozen=True, eq=False)
class Distribution:
    """P(next token | the text before it). `logprobs` [vocabulary]: natural logs, -inf if removed.

    `logits` [vocabulary]: the model's own scores, of which they are the log-softmax; None when
    rules have shaped them. `rank` in its tables is the place in this distribution, 1 for the
    likeliest.
    """

    prompt: Any
    logprobs: Floats
    facts: Facts
    logits: Floats | None = None

    def __repr__(self) -> str:
        top = ", ".join(f"{t.text!r} {t.prob:.4f}" for t in self.top(5))
        return f"Distribution({top}, ...; {self.entropy_bits:.2f} bits)"

    @property
    def model(self) -> str:
        return self.facts.name

    @property
    def numerics(self) -> str:
        return self.facts.numerics

    @property
    def probs(self) -> Floats:
        return np.asarray(np.exp(self.logprobs))

    @property
    def entropy_bits(self) -> float:
        """Shannon entropy in bits: 2 to this power is the number of equal choices it is like."""
        p, kept = self.probs, np.isfinite(self.logprobs)
        return abs(float((p[kept] * self.logprobs[kept]).sum() / math.log(2)))

    def top(self, k: int = 10) -> list[Ranked]:
        """The `k` likeliest tokens, best first; ties by the lower id; removed ones left out."""
        count = whole(k)
        if count is None or count < 1:
            raise ParameterError(f"k={shown(k)}: a number of tokens is a whole number from 1 "
                                 "on", "k")
        ids = top_ids(self.logprobs, min(count, len(self.logprobs)))
        kept = [int(i) for i in ids if np.isfinite(self.logprobs[i])]
        return [self.ranked(i, place) for place, i in enumerate(kept, 1)]

    def ranked(self, token: int, rank: int) -> Ranked:
        logprob = float(self.logprobs[token])
        return Ranked(token, self.facts.text(token), math.exp(logprob), logprob, rank)

    def prob(self, token: str | int) -> float:
        """The probability of a token, by its text (" blue") or id."""
        return math.exp(self.logprob(token))

    def logprob(self, token: str | int) -> float:
        return float(self.logprobs[self.token_id(token)])

    def token_id(self, token: str | int) -> int:
        """The id of one token. Raises PromptError for a text that is not exactly one token."""
        if not isinstance(token, str):
            return self.facts.check([token])[0]
        ids = self.facts.words(token, start=False)
        if len(ids) != 1:
            raise PromptError(f"{token!r} is {len(ids)} tokens {ids}: give a text that is one "
                              "token, or an id")
        return ids[0]

    def to_json(self, k: int = 10) -> dict[str, Any]:
        """The object that `next --json` prints."""
        return {"prompt": strict(self.prompt), "model": self.model, "numerics": self.numerics,
                "entropy_bits": self.entropy_bits, "top": [t.json() for t in self.top(k)]}

    @property
    def title(self) -> str:
        """The prompt as one reads it: ids as their text, a chat by its last message."""
        if isinstance(self.prompt, str):
            return self.prompt
        if is_chat(self.prompt):
            last = self.prompt if isinstance(self.prompt, Mapping) else self.prompt[-1]
            return str(last.get("content", ""))
        words = self.facts.tokenizer
        return str(self.prompt) if words is None else words.decode(
            self.prompt, skip_special_tokens=False)

    def plot(self, path: str | None = None, k: int = 10) -> Any:
        """A Plotly bar chart of the `k` likeliest tokens, the prompt as title; a page at `path`."""
        from unspool.show.bars import bar_page, plotly_bars

        top = self.top(k)
        bars = [t.text for t in top], [t.prob for t in top], self.title
        if path is not None:
            Path(path).write_text(bar_page(*bars), encoding="utf-8")
        return plotly_bars(*bars)


def raw(prompt: Any, row: Row, facts: Facts) -> Distribution:
    """The distribution before the rules."""
    logits = row.raw
    return Distribution(prompt, np.asarray(logits - row.norm), facts, logits)


def shaped(prompt: Any, row: Row, facts: Facts) -> Distribution:
    """The distribution after the rules, -inf where they removed a token."""
    left, out = row.shaped, np.full(row.vocab, -np.inf)
    out[left.ids] = left.values - left.norm
    return Distribution(prompt, out, facts)
