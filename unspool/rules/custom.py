"""Rules of your own: functions that give the logits, or the ids that are allowed. They have only a
definition, and each is called for one text alone."""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.core.errors import ParameterError
from unspool.rules.rows import Rows
from unspool.rules.rule import rule

Floats = NDArray[np.float64]


def name_of(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def is_processor(function: object) -> bool:
    """Whether it is a LogitsProcessor of transformers, which wants tensors of a batch."""
    return "LogitsProcessor" in [kind.__name__ for kind in type(function).__mro__]


def by_tensors(processor: Callable[..., Any], ids: list[int], logits: Floats) -> Any:
    """Call a processor of transformers. torch is there already: who made it has loaded it."""
    torch = sys.modules["torch"]
    with torch.no_grad():
        [out] = processor(torch.tensor([ids]), torch.tensor(logits[None], dtype=torch.float32))
    return out


def answer(function: Callable[..., Any], ids: list[int], logits: Floats) -> Floats:
    """What the function makes of one row [V]. Raises ParameterError if that is no row of logits."""
    given = (by_tensors(function, ids, logits) if is_processor(function) else
             function(ids, logits.copy()))
    if np.shape(given) != logits.shape:
        problem = f"it gave {type(given).__name__} of shape {tuple(np.shape(given))}"
    else:
        out = np.asarray(given, np.float64)
        if (out < np.inf).all():
            return out
        problem = "it gave NaN or infinity"
    raise ParameterError(f"logits_processor {name_of(function)}: {problem}; it must return "
                         f"{len(logits)} logits, -inf for tokens that it removes",
                         "logits_processor")


@rule(recalls=True)
def custom(rows: Rows) -> Any:
    """What a function makes of the logits.

    The data is a `function(ids, logits) -> logits`: the text so far, prompt included, as a list,
    and an array [V] that it may change; or a LogitsProcessor of transformers, which gets tensors
    [1, n] and [1, V] (float32). Raises ParameterError for an answer of another shape, NaN or
    infinity.
    """
    values = np.asarray(rows.values, np.float64)
    return rows.like(np.stack([answer(function, text.everything, row) for function, text, row in
                               zip(rows.data, rows.texts, values, strict=True)]))


def allowed(function: Callable[..., Any], ids: NDArray[np.int64], vocab: int) -> list[int]:
    """What the function allows next. Raises ParameterError for nothing and for unknown ids."""
    out = [int(token) for token in function(0, ids)]
    wrong = [token for token in out if not 0 <= token < vocab]
    if out and not wrong:
        return out
    problem = (f"it allowed token {wrong[0]}, and ids run from 0 to {vocab - 1}" if wrong else
               "it allowed no token at all")
    raise ParameterError(f"prefix_allowed_tokens_fn {name_of(function)}: {problem}, after "
                         f"{len(ids)} tokens", "prefix_allowed_tokens_fn")


@rule(recalls=True)
def prefix_allowed(rows: Rows) -> Any:
    """Keep the tokens that a function allows (De Cao et al. 2020, arXiv:2010.00904). Where all of
    them are removed already they come back, equally likely (transformers:
    PrefixConstrainedLogitsProcessor).

    The data is a `function(batch, ids) -> ids`: 0, since each text is alone, and the text so far,
    prompt included, as an array. Raises ParameterError if it allows nothing.
    """
    xp, vocab = rows.xp, rows.values.shape[-1]
    texts = [np.array(text.everything, np.int64) for text in rows.texts]
    which = rows.marked([allowed(function, text, vocab)
                         for function, text in zip(rows.data, texts, strict=True)])
    kept = rows.drop(~which)
    alive = xp.any(kept > -xp.inf, axis=-1, keepdims=True)
    return xp.where(which & ~alive, xp.zeros_like(kept), kept)
