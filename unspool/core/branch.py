"""A branch: settled tokens and a tentative draft. Only `Job.apply` changes one."""
from __future__ import annotations

from dataclasses import dataclass

from unspool.core.history import History
from unspool.core.prefix import Candidate, Prefix


@dataclass(slots=True, eq=False)
class Branch:
    """One continuation of a request.

    `settled` holds the prompt and what was written; `prompt` counts the prompt's tokens.
    `draft` are tokens the model has yet to judge, `parents` the index in the draft of the token
    before each (-1: the last settled one), and `tail` how they see each other ("causal", "block").
    `logprob` and `score` are sums over the written tokens, before and after the rules.
    `states` and `watch` are the folds of the request's rules and stops over the tokens; `history`
    is the text as an array, where a rule looks at it; `voices` are the texts as the request's other
    readers see them. `stage` is the part of the request that it is in, `since` how many tokens were
    written when that began. `kept` is what the strategy keeps with it, plain data.
    """

    number: int
    settled: Prefix
    prompt: int
    choice: int = 0
    replaced: int = 0
    draft: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    tail: str = "causal"
    logprob: float = 0.0
    score: float = 0.0
    states: tuple[object, ...] = ()
    history: History | None = None
    watch: tuple[object, ...] = ()
    ended: Ended | None = None
    voices: tuple[Prefix, ...] = ()
    stage: int = 0
    since: int = 0
    kept: object = None

    @property
    def written(self) -> int:
        return self.settled.length - self.prompt

    @property
    def tokens(self) -> list[int]:
        """The written tokens, the ending one included."""
        return self.settled.last(self.written)

    @property
    def facts(self) -> list[Candidate]:
        return self.settled.facts(self.written)

    def path(self, index: int) -> list[int]:
        """The draft tokens before slot `index`: slot 0 follows the last settled token."""
        out, node = [], index - 1
        while node >= 0:
            out.append(self.draft[node])
            node = self.parents[node]
        return out[::-1]


@dataclass(frozen=True, slots=True)
class Ended:
    """Why a branch ended: `reason` is stop, length, cancelled or error; `which` says by what. The
    reason "stage" is that of a text at the end of a stage, which the next may go on with.

    `cut` is how many bytes of the written text, from its end, do not belong to the answer.
    """

    reason: str
    which: str | int | None = None
    cut: int = 0
