"""Prints `docs/composition.md` by running a law for every pair; `--write` puts it there. Minutes.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "composition.md"
sys.path[:0] = [str(ROOT / "tests" / "laws"), str(ROOT / "tests")]
HEAD = """# What goes with what

Printed by `scripts/composition.py`, which runs every pair on a small compiled model. A cell says
how many tokens were written, in how many forwards, and which law the pair was held to, by its
letter: the law ran and did not say no. A number stands for a pair that the program refuses, with
the reason below. What a strategy is: [strategies](strategies.md), [programs](programs.md),
[mixes](mixes.md).
"""


def table(title: str, columns: Any, room: Any, subject: Any, letters: dict[str, str],
          reasons: list[str]) -> tuple[list[str], int, int]:
    lines = [f"\n## {title}\n", f"| | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    held = refused = 0
    for row in room.ROWS:
        cells = []
        for change, law in columns.values():
            found = room.cell(subject, row, change, law)
            if isinstance(found, str):
                if found not in reasons:
                    reasons.append(found)
                cells.append(f"[{reasons.index(found) + 1}]")
                refused += 1
                continue
            letter = letters.setdefault(law.__name__, chr(ord("a") + len(letters)))
            cells.append(f"{found[0]} / {found[1]} {letter}")
            held += 1
        print(row, *cells, sep="  ", file=sys.stderr)
        lines.append(f"| {row.replace('|', '')} | {' | '.join(cells)} |")
    return lines, held, refused


def page() -> str:
    room, subjects = import_module("composition_cells"), import_module("subjects")
    subject = subjects.SUBJECTS["llama F32"]()
    letters: dict[str, str] = {}
    reasons: list[str] = []
    lines: list[str] = []
    held = refused = 0
    try:
        for title, columns in room.TABLES.items():
            more, good, bad = table(title, columns, room, subject, letters, reasons)
            lines, held, refused = lines + more, held + good, refused + bad
    finally:
        subject.close_all()
    laws = [f"- {letter}: {name.replace('_', ' ')}" for name, letter in letters.items()]
    why = [f"{i}. {plain(reason)}" for i, reason in enumerate(reasons, 1)]
    asked = [f"| `{params}` | {plain(reason)} |" for params, reason in room.refusals()]
    return "\n".join([
        HEAD, f"{held + refused} pairs: {held} held by a law, {refused} refused.", *lines,
        "\n## The laws\n", *laws, *(["\n## Refused pairs\n", *why] if why else []),
        "\n## What is refused before the first forward\n",
        "Asked of a model that gives neither hidden states nor inner layers, beside models of "
        "another vocabulary. What is refused of a search and not of sampling would have no meaning "
        "there: a search compares texts and draws no token.\n",
        "| asked | the program says |", "|---|---|", *asked, ""])


def plain(text: str) -> str:
    """As a line of the page: without addresses, and nothing that would part a table."""
    return re.sub(r" at 0x[0-9a-f]+", "", text).replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    text = page()
    if "--write" in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    else:
        print(text)
