"""Penalties: tokens that have occurred become less likely. Which are counted is a number of each:
`scope` GENERATED or EVERYTHING, `last` how many of those (-1: all)."""
from __future__ import annotations

from typing import Any

from unspool.kernels.shaping import penalties
from unspool.kernels.shaping.recipe import Operation
from unspool.kernels.shaping.row import EDIT
from unspool.rules.rows import EVERYTHING, GENERATED, Rows
from unspool.rules.rule import rule


def weakened(rows: Rows, which: Any, penalty: Any) -> Any:
    """Of these tokens [R, V] the positive logits divided by the penalty, the others times it."""
    xp, x = rows.xp, rows.values
    return xp.where(which, xp.where(x > 0, x / penalty, x * penalty), x)


@rule(Operation(penalties.repetition_penalty, EDIT), recalls=True)
def repetition_penalty(rows: Rows, penalty: Any, scope: Any = EVERYTHING, last: Any = -1) -> Any:
    """Divide positive logits of counted tokens by the penalty, multiply negative ones by it, once
    for each token (Keskar et al. 2019, arXiv:1909.05858).

    `scope` 0 counts the tokens that were written, 1 those of the prompt too; `last` is how many of
    them, from the end on, -1 all.
    """
    return weakened(rows, rows.counts(scope, last) > 0, penalty)


@rule(Operation(penalties.encoder_repetition_penalty, EDIT), recalls=True)
def encoder_repetition_penalty(rows: Rows, penalty: Any) -> Any:
    """The repetition penalty with 1 / penalty on the tokens of the prompt: above 1 it raises them,
    against what the source does not say (transformers: EncoderRepetitionPenaltyLogitsProcessor)."""
    prompts = [text.tokens[:text.prompt] for text in rows.texts]
    return weakened(rows, rows.marked(prompts), 1 / penalty)


@rule(Operation(penalties.frequency_penalty, EDIT), recalls=True)
def frequency_penalty(rows: Rows, a: Any, scope: Any = GENERATED, last: Any = -1) -> Any:
    """Take `a` off the logit of a token for each time it is counted (OpenAI's API);
    `scope` and `last` as in `repetition_penalty`."""
    return rows.values - a * rows.counts(scope, last)


@rule(Operation(penalties.presence_penalty, EDIT), recalls=True)
def presence_penalty(rows: Rows, a: Any, scope: Any = GENERATED, last: Any = -1) -> Any:
    """Take `a` off the logit of every token that is counted, once (OpenAI's API);
    `scope` and `last` as in `repetition_penalty`."""
    return rows.values - a * rows.like(rows.counts(scope, last) > 0)
