"""Ids as a rule's data: how its operation gets them."""
from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from unspool.rules.rule import Packed, RuleValue


def pack_ids(rule: RuleValue) -> Packed:
    """Where the ids lie and how many there are, then the rule's numbers.

    Raises TypeError if the data is not ids.
    """
    named: Iterable[int] = rule.data  # type: ignore[assignment]
    ids = np.unique(np.fromiter(named, np.int64))
    ids = ids[ids >= 0]
    return (ids.ctypes.data, len(ids), *rule.numbers), ids
