"""Checks that every file has at most 300 lines and every function at most 50.

Looks at `unspool/`, `bench/` and `scripts/`; prints what is too long and exits 1. Lines of text
are counted as an editor shows them; a function counts from its `def` to its last line.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

FILE_LINES = 300
FUNCTION_LINES = 50
FOLDERS = ("unspool", "bench", "scripts")


def too_long(root: Path) -> Iterator[str]:
    """One line for each file or function under `root` that is over its limit."""
    for path in sorted(p for folder in FOLDERS for p in (root / folder).rglob("*.py")):
        name, source = path.relative_to(root), path.read_text(encoding="utf-8")
        lines = len(source.splitlines())
        if lines > FILE_LINES:
            yield f"{name}: {lines} lines, at most {FILE_LINES}"
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES:
                    at = f"{name}:{node.lineno}: {node.name}"
                    yield f"{at}: {lines} lines, at most {FUNCTION_LINES}"


if __name__ == "__main__":
    found = list(too_long(Path(__file__).resolve().parent.parent))
    print("\n".join(found) or "sizes: all within the limits")
    sys.exit(bool(found))
