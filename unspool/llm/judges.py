"""From parameters to scorers: rewards, utilities and extractors of answers, by name or as a
function of a caller's own."""
from __future__ import annotations

import re
from typing import Any

from unspool.core.errors import ParameterError
from unspool.core.sockets import Extractor, Reward, Utility
from unspool.core.values import shown
from unspool.llm.facts import Facts
from unspool.scorers import (
    EXTRACTORS,
    REWARDS,
    UTILITIES,
    OwnExtractor,
    OwnReward,
    OwnUtility,
    Pattern,
)


def reward_of(facts: Facts, value: Any) -> Reward | None:
    """None: texts are ranked by their own log-probability."""
    if value is None or callable(getattr(value, "rewards", None)):
        return value  # type: ignore[no-any-return]
    if callable(value):
        return OwnReward(value, facts.piece())
    if isinstance(value, str) and value in REWARDS:
        return REWARDS[value](facts.piece())
    raise unknown("reward", value, "logprob, mean_logprob, or a function of a list of texts")


def utility_of(facts: Facts, value: Any) -> Utility:
    if callable(getattr(value, "table", None)):
        return value  # type: ignore[no-any-return]
    if callable(value):
        return OwnUtility(value, facts.piece())
    if not isinstance(value, str) or value not in UTILITIES:
        raise unknown("utility", value, f"{', '.join(UTILITIES)}, or a function of two texts")
    if value == "states":
        if not facts.width:
            raise ParameterError("utility=states: it compares hidden states, which "
                                 f"{facts.name} does not give; use chrf", "utility")
    else:
        facts.needs_text("utility")
    return UTILITIES[value](facts.piece())


def extractor_of(facts: Facts, value: Any) -> Extractor:
    if callable(getattr(value, "answers", None)):
        return value  # type: ignore[no-any-return]
    facts.needs_text("answer")
    if callable(value):
        return OwnExtractor(value, facts.piece())
    if not isinstance(value, str) or not value:
        raise unknown("answer", value, f"{', '.join(EXTRACTORS)}, a pattern, or a function of a "
                                       "text")
    if value in ("number", "boxed"):
        return EXTRACTORS[value](facts.piece())
    return Pattern(value, groups(value), piece=facts.piece())


def groups(pattern: str) -> int:
    """The group that holds the answer: the first one, or all that matched."""
    try:
        return min(re.compile(pattern).groups, 1)
    except (re.error, RecursionError, OverflowError):
        return 0  # what is wrong with it is said where it is compiled


def unknown(name: str, value: Any, known: str) -> ParameterError:
    return ParameterError(f"{name}={shown(value)}: must be {known}; give one of them", name)
