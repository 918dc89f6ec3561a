"""JSON from model files, read strictly: what is doubtful is refused, and memory is bounded.

Refused beyond RFC 8259: a name that occurs twice in an object, NaN and infinities, numbers that
overflow, and text whose values would take more memory than `BUDGET`. Knows no file's meaning.
"""
from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

from unspool.core.errors import FormatError
from unspool.files.mapped import map_file

BUDGET = 88 * 2**20  # bytes; an index of 92,000 tensors takes about 60 MB
LARGEST = 2**24  # bytes of text; the index of a 671-billion-parameter model has 9 MB


def parse_object(raw: bytes, what: str) -> dict[str, Any]:
    """The JSON object in UTF-8 `raw`; `what` names it in the FormatError raised for anything else.
    """
    _check_memory(raw, what)
    try:
        found = json.loads(str(raw, "utf-8"), object_pairs_hook=_object, parse_float=_finite,
                           parse_constant=_refuse)
    except RecursionError:
        raise FormatError(f"{what}: JSON nested too deeply: fetch the file again") from None
    except ValueError as error:  # also bad UTF-8 and numbers of thousands of digits
        raise FormatError(f"{what}: not valid JSON ({error}): fetch the file again") from None
    if not isinstance(found, dict):
        raise FormatError(f"{what}: JSON must be an object, not {type(found).__name__}: "
                          "fetch the file again")
    return found


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises ModelError when it cannot be opened, else FormatError."""
    data = map_file(path)
    if len(data) > LARGEST:
        raise FormatError(f"{path}: {len(data)} bytes of JSON, at most {LARGEST} are read: "
                          "this is no model's file")
    return parse_object(data.tobytes(), str(path))


def _check_memory(raw: bytes, what: str) -> None:
    """Bound what parsing will take, from counts of the marks that make objects.

    Per mark the most that CPython 3.11 uses; text is held up to three times over (bytes, text,
    strings), and the latter two take four bytes a character when one lies beyond the BMP.
    """
    text = 3 if raw.isascii() and b"\\u" not in raw else 9
    boxes = raw.count(b"{") + raw.count(b"[")
    needed = len(raw) * text + 72 * boxes + 48 * raw.count(b",") + 200 * raw.count(b":")
    if len(raw) > LARGEST or needed > BUDGET:
        raise FormatError(f"{what}: reading its JSON may take {needed >> 20} MiB, at most "
                          f"{BUDGET >> 20} MiB are allowed: this is no model's file")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"name {twice[:80]!r} occurs twice")
    return found


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"number {text[:40]} is too large")
    return value


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")
