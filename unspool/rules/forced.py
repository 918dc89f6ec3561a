"""Tokens that are forced in one place of the text: no other stays there, and they are equally
likely, also where other rules removed them (transformers: ForcedBOSTokenLogitsProcessor,
ForcedEOSTokenLogitsProcessor). Their data is the ids."""
from __future__ import annotations

from typing import Any

from unspool.kernels.shaping import tokens
from unspool.kernels.shaping.recipe import Operation
from unspool.kernels.shaping.row import KEEP
from unspool.rules.ids import pack_ids
from unspool.rules.rows import Rows
from unspool.rules.rule import rule


def forced(rows: Rows, here: Any) -> Any:
    """The rows [R, 1] that are `here` with nothing but the tokens of their data."""
    xp = rows.xp
    only = xp.where(rows.marked(rows.data), xp.zeros_like(rows.values), -xp.inf)
    return xp.where(here, only, rows.values)


@rule(Operation(tokens.forced_first, KEEP), recalls=True, pack=pack_ids)
def forced_first(rows: Rows) -> Any:
    """The first written token, behind a prompt of any length. The data is one id."""
    return forced(rows, rows.written == 0)


@rule(Operation(tokens.forced_last, KEEP), recalls=True, pack=pack_ids)
def forced_last(rows: Rows, length: Any) -> Any:
    """The last token of a text of this length, its prompt counted."""
    return forced(rows, rows.length == length - 1)
