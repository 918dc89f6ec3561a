"""Runs the notebooks of the course; with `--write`, puts their outputs into the files.

Without it, exits with 1 where a cell fails or no longer prints what the file shows; numbers may
differ by rounding. The solution below an exercise is run too, and must print "right". Charts are
kept as data and as a small drawing for viewers that run no scripts, without Plotly's own 5 MB.
"""

import os
import re
import sys
from collections.abc import Iterator
from html import escape
from math import isclose
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

COURSE = Path(__file__).resolve().parent.parent / "docs" / "course"
SLOW_MACHINE = 300  # seconds a cell: a guard against hanging, not a measure
SOLUTION = re.compile(r"<details>.*?^```python\n(.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?")
PLOTLY, SVG = "application/vnd.plotly.v1+json", "image/svg+xml"

WIDTH, LABELS, ROW, GAP, HEAD = 720, 120, 24, 7, 48  # of the drawing, in pixels
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7")  # Okabe and Ito's, where a chart has none


class Kernel(AsyncKernelManager):
    """A kernel of the interpreter that runs this, whatever is installed elsewhere."""

    @property
    def kernel_spec(self) -> KernelSpec:
        module = ["-m", "ipykernel_launcher", "--log-level=ERROR", "-f", "{connection_file}"]
        argv = [sys.executable, *module]
        return KernelSpec(argv=argv, display_name="Python 3", language="python")


def run(path: Path) -> Any:
    """The notebook with fresh outputs. Raises CellExecutionError or ValueError (a solution)."""
    book = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    cells, solutions = list(book.cells), []
    for cell in cells:
        found = SOLUTION.search(cell.source) if cell.cell_type == "markdown" else None
        if found:
            solved = nbformat.v4.new_code_cell(found[1])  # type: ignore[no-untyped-call]
            solutions.append(solved)
            book.cells.insert(book.cells.index(cell) + 1, solved)
    os.environ["PLOTLY_RENDERER"] = "plotly_mimetype"
    NotebookClient(
        book,
        timeout=SLOW_MACHINE,
        record_timing=False,
        coalesce_streams=True,
        kernel_manager_class=Kernel,
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    for solved in solutions:
        if not any(text.endswith("right\n") for text in shown(solved)):
            raise ValueError(f"{path.name}: this solution is not right:\n{solved.source}")
    book.cells = cells
    tidy(book)
    return book


def tidy(book: Any) -> None:
    """Leave out what differs from run to run or machine to machine; draw the charts."""
    book.metadata.language_info = {"name": "python"}
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    for count, cell in enumerate(code, 1):
        cell.execution_count = count
        # What is said on stderr, such as that kernels are compiled, comes with the first run only.
        cell.outputs = [out for out in cell.outputs if out.get("name") != "stderr"]
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = count
            if PLOTLY in output.get("data", {}):
                output.data[PLOTLY]["layout"].pop("template", None)  # its many colours say nothing
                output.data[SVG] = drawing(output.data[PLOTLY])


def shown(cell: Any) -> Iterator[str]:
    """What a reader sees below a cell, as text."""
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        yield output.get("text") or data.get(SVG) or data.get("text/plain", "")


def alike(one: str, other: str) -> bool:
    """The same words, and numbers that differ by no more than rounding."""
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=False)
    return NUMBER.split(one) == NUMBER.split(other) and all(
        isclose(float(a), float(b), rel_tol=0.01, abs_tol=0.002) for a, b in pairs
    )


def stale(old: Any, new: Any) -> list[str]:
    """The sources of cells that no longer print what the file shows."""
    pairs = ((a, list(shown(a)), list(shown(b))) for a, b in zip(old.cells, new.cells, strict=True))
    return [cell.source for cell, a, b in pairs if len(a) != len(b) or not all(map(alike, a, b))]


def drawing(chart: dict[str, Any]) -> str:
    """A chart of horizontal bars as SVG: as still as paper, and readable everywhere."""
    bars, layout = chart["data"], chart["layout"]
    names = layout["yaxis"].get("ticktext") or [escape(str(y)) for y in bars[0]["y"]]
    most = max(max(trace["x"]) for trace in bars)
    colours = layout.get("colorway", COLOURS)
    high = max(ROW, 14 * len(bars) + GAP)
    thick = (high - GAP) / len(bars)
    parts = [line(12, 24, layout["title"]["text"], "start", 16)]
    for i, name in enumerate(names):
        top = HEAD + i * high
        parts.append(line(LABELS - 8, top + (high - GAP) / 2 + 4, name, "end"))
        for j, trace in enumerate(bars):
            x, y = float(trace["x"][i]), top + j * thick
            wide = (WIDTH - LABELS - 80) * x / most
            colour = trace.get("marker", {}).get("color", colours[j % len(colours)])
            parts.append(rectangle(LABELS, y, wide, thick - 1, colour))
            parts.append(line(LABELS + wide + 5, y + thick / 2 + 4, f"{x:.2%}", "start", 11))
    foot = HEAD + len(names) * high + 8
    for j, trace in enumerate(bars if len(bars) > 1 else ()):
        parts.append(rectangle(LABELS + 180 * j, foot, 12, 12, colours[j % len(colours)]))
        parts.append(line(LABELS + 180 * j + 18, foot + 11, escape(trace["name"]), "start"))
    tall = foot + (24 if len(bars) > 1 else 4)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {tall}" width="{WIDTH}" '
        f'height="{tall}" font-family="sans-serif">\n'
        + "\n".join([rectangle(0, 0, WIDTH, tall, "#ffffff"), *parts])
        + "\n</svg>"
    )


def rectangle(x: float, y: float, width: float, height: float, colour: str) -> str:
    return (
        f'<rect x="{x:g}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'
    )


def line(x: float, y: float, markup: str, anchor: str, size: int = 13) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
        f'fill="#2a3f5f">{markup}</text>'
    )


def main(words: list[str]) -> int:
    """Run the notebooks named, or all of the course; 1 when one is stale."""
    write = "--write" in words
    paths = [Path(word) for word in words if word != "--write"] or sorted(COURSE.glob("*.ipynb"))
    late = 0
    for path in paths:
        book = run(path)
        if write:
            nbformat.write(book, path)  # type: ignore[no-untyped-call]
            continue
        old = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
        for source in stale(old, book):
            late = 1
            print(f"{path.name}: stale, run scripts/run_notebooks.py --write; see:\n{source}\n")
    return late


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
