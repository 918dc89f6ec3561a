"""Rules of your own: functions that give the logits, or the ids that are allowed. They have only a
definition, and each is called for one text alone."""
from __future__ import annotations

import sys
from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.core.errors import ParameterError
from unspool.core.values import shown
from unspool.kernels.shaping.tokens import LARGEST
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
        return processor(torch.tensor([ids]), torch.tensor(logits[None], dtype=torch.float32))


def array_of(given: Any) -> NDArray[Any] | None:
    """What a function gave, as an array; None for what is none."""
    if hasattr(given, "detach"):  # a tensor, maybe one that follows gradients or is no numpy type
        given = given.detach().cpu()
        given = given.double() if given.is_floating_point() else given
    try:
        return np.asarray(given)
    except (TypeError, ValueError, RuntimeError):
        return None


def answer(function: Callable[..., Any], ids: list[int], logits: Floats) -> Floats:
    """What the function makes of one row [V]. Raises ParameterError if that is no row of logits."""
    batch = is_processor(function)
    shape = (1, len(logits)) if batch else (len(logits),)
    given = by_tensors(function, ids, logits) if batch else function(ids, logits.copy())
    out = array_of(given)
    if out is None or out.shape != shape:
        problem = f"it gave {type(given).__name__} of shape {None if out is None else out.shape}"
    elif out.dtype.kind not in "fiu":
        problem = f"it gave values of type {out.dtype}"
    elif (out <= LARGEST).all():
        return out.reshape(len(logits)).astype(np.float64)
    else:
        problem = "it gave a number beyond float32, NaN or infinity"
    raise ParameterError(f"logits_processor {name_of(function)}: {problem}; it must return "
                         f"{len(logits)} logits, -inf for tokens that it removes",
                         "logits_processor")


@rule(recalls=True)
def custom(rows: Rows) -> Any:
    """What a function makes of the logits.

    The data is a `function(ids, logits) -> logits`: the text so far, prompt included, as a list,
    and an array [V] that it may change; or a LogitsProcessor of transformers, which gets tensors
    [1, n] and [1, V] (float32). Raises ParameterError for an answer of another shape or type, NaN
    or infinity.
    """
    values = np.asarray(rows.values, np.float64)
    return rows.like(np.stack([answer(function, text.everything, row) for function, text, row in
                               zip(rows.data, rows.texts, values, strict=True)]))


def allowed(function: Callable[..., Any], ids: NDArray[np.int64], vocab: int) -> list[int]:
    """What the function allows next. Raises ParameterError for nothing and for what is no id."""
    given = function(0, ids)
    try:
        out = list(given)
    except TypeError:
        problem = f"it gave {type(given).__name__}, which is no list of ids"
    else:
        wrong = [token for token in out if not is_id(token, vocab)]
        if out and not wrong:
            return list(map(int, out))
        problem = (f"it allowed token {shown(wrong[0])}, and ids run from 0 to {vocab - 1}"
                   if wrong else "it allowed no token at all")
    raise ParameterError(f"prefix_allowed_tokens_fn {name_of(function)}: {problem}, after "
                         f"{len(ids)} tokens", "prefix_allowed_tokens_fn")


def is_id(token: Any, vocab: int) -> bool:
    """False for truth values and fractions: read as ids they would be what they are not."""
    kind = str(getattr(token, "dtype", type(token).__name__))
    try:
        return not kind.endswith("bool") and 0 <= index(token) < vocab
    except TypeError:
        return False


@rule(recalls=True)
def prefix_allowed(rows: Rows) -> Any:
    """Keep the tokens that a function allows (De Cao et al. 2020, arXiv:2010.00904). Where all of
    them are removed already they come back, equally likely (transformers:
    PrefixConstrainedLogitsProcessor).

    The data is a `function(batch, ids) -> ids`: 0, since each text is alone, and the text so far,
    prompt included, as an array. Raises ParameterError if it allows nothing, or what is no id.
    """
    xp, vocab = rows.xp, rows.values.shape[-1]
    texts = [np.array(text.everything, np.int64) for text in rows.texts]
    which = rows.marked([allowed(function, text, vocab)
                         for function, text in zip(rows.data, texts, strict=True)])
    kept = rows.drop(~which)
    alive = xp.any(kept > -xp.inf, axis=-1, keepdims=True)
    return xp.where(which & ~alive, xp.zeros_like(kept), kept)
