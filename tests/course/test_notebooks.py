"""The course runs, prints what its files show, can be solved, and stays small.

`scripts/run_notebooks.py` does the running, in a process of its own with a kernel of this
interpreter.
"""

import runpy
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest

from unspool.core.errors import ModelError
from unspool.files.store import find

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "scripts" / "run_notebooks.py"
NOTEBOOKS = sorted((ROOT / "docs" / "course").glob("*.ipynb"))
SLOW_MACHINE = 280  # seconds: a guard against hanging, not a measure
CHART = {
    "data": [
        {"x": [0.5, 0.25], "y": ["·a", "<b>"], "name": "T = 1"},
        {"x": [0.75, 0.1], "y": ["·a", "<b>"], "name": "T = 0.5"},
    ],
    "layout": {"title": {"text": "The color"}, "yaxis": {}},
}


def name(path):
    return path.stem


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(SCRIPT))


def test_the_course_has_begun():
    assert NOTEBOOKS


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=name)
def test_a_notebook_prints_what_it_shows(notebook):
    try:
        find("smollm2")
    except ModelError as error:
        pytest.skip(f"the default weights are missing: {error}")
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), str(notebook)],
        capture_output=True,
        text=True,
        timeout=SLOW_MACHINE,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr[-4000:]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=name)
def test_a_notebook_is_committed_small_and_with_its_outputs(notebook):
    assert notebook.stat().st_size < 100_000
    cells = [c for c in nbformat.read(notebook, as_version=4).cells if c.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert "error" not in {output.output_type for output in outputs}
    assert any("image/svg+xml" in output.get("data", {}) for output in outputs)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ("p = 0.1134, 5 tokens\n", True),
        ("p = 0.1136, 5 tokens\n", True),  # rounding on another machine
        ("p = 0.1334, 5 tokens\n", False),
        ("p = 0.1134, 6 tokens\n", False),
        ("p = 0.1134, 5 words\n", False),
        ("p = 0.1134\n", False),
    ],
)
def test_only_rounding_is_overlooked(script, other, same):
    assert script["alike"]("p = 0.1134, 5 tokens\n", other) is same


def test_a_changed_output_is_stale(script):
    def book(text):
        output = nbformat.v4.new_output("stream", text=text)
        cell = nbformat.v4.new_code_cell("print(word)", outputs=[output])
        return nbformat.v4.new_notebook(cells=[cell])

    assert script["stale"](book("sky\n"), book("sky\n")) == []
    assert script["stale"](book("sky\n"), book("sea\n")) == ["print(word)"]


def test_a_wrong_solution_is_found(script, tmp_path):
    text = "<details>\n\n```python\nprint('not yet')\n```\n\n</details>"
    cells = [nbformat.v4.new_code_cell("1 + 1"), nbformat.v4.new_markdown_cell(text)]
    path = tmp_path / "wrong.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), str(path)],
        capture_output=True,
        text=True,
        timeout=SLOW_MACHINE,
    )
    assert ran.returncode == 1
    assert "this solution is not right" in ran.stderr


def test_a_drawing_shows_every_bar_in_proportion(script):
    svg = ElementTree.fromstring(script["drawing"](CHART))
    kinds = "{http://www.w3.org/2000/svg}"
    words = [text.text for text in svg.iter(f"{kinds}text")]
    for word in ("The color", "·a", "<b>", "50.00%", "75.00%", "25.00%", "10.00%", "T = 0.5"):
        assert word in words
    page, *bars = svg.iter(f"{kinds}rect")
    wide = [float(bar.get("width")) for bar in bars[:4]]  # the rest is the legend
    assert [round(w / max(wide), 2) for w in wide] == [0.67, 1, 0.33, 0.13]
    assert all(float(b.get("x")) + float(b.get("width")) < float(page.get("width")) for b in bars)
    assert all(0 < float(text.get("y")) < float(page.get("height"))
               for text in svg.iter(f"{kinds}text"))
