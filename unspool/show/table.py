"""Plain tables: rows of text in columns, for a file, a pipe or a terminal alike.

Knows nothing of what it lines up.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

GAP = "  "


def columns(rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """One line for each row; the first `left` columns begin at the same place, the others end so.

    The first row is the head. Columns that are empty but for it are left out.
    """
    filled = [any(row[i] for row in rows[1:]) for i in range(len(rows[0]))]
    widths = [max(cells(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        parts = []
        for i, text in enumerate(row):
            pad = " " * (widths[i] - cells(text))
            parts += [text + pad if i < left else pad + text] if filled[i] else []
        lines.append(GAP.join(parts).rstrip())
    return lines


def cells(text: str) -> int:
    """How many cells of a terminal a text takes: wide characters two, combining ones none."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    none = sum(unicodedata.combining(char) > 0 for char in text)
    return len(text) + wide - none


def percent(share: float) -> str:
    """A share as percent with three digits, nothing for nothing: "31.2 %", "0.0214 %"."""
    if not share or abs(share) < 1e-12:
        return ""
    return f"{100 * share:.3g} %"
