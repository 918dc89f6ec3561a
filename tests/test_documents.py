"""Everything that a document shows as code is run, each document in a process of its own.

`python` blocks of one document share a namespace and keep their line numbers. Lines of `bash`
blocks that begin with `unspool` are run in order.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [*ROOT.glob("README.md"), *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
SLOW_MACHINE = 300  # seconds: a guard against hanging, not a measure


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def python_of(page: str) -> str:
    """The page's Python, every line where it stands in the page."""
    lines = [""] * (page.count("\n") + 1)
    for block in BLOCK.finditer(page):
        if block[1] == "python":
            first = page.count("\n", 0, block.start(2))
            code = block[2].splitlines()
            lines[first : first + len(code)] = code
    return "\n".join(lines)


def commands_of(page: str) -> list[str]:
    """The page's `unspool` commands; a trailing backslash joins two lines."""
    blocks = [block[2] for block in BLOCK.finditer(page) if block[1] in ("bash", "sh", "console")]
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    plain = [re.sub(r"^\$ |^\.venv/bin/", "", line) for line in lines]
    return [line for line in plain if re.match(r"unspool\b|echo .*\| *unspool\b", line)]


def run(command: list[str] | str, cwd: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    ran = subprocess.run(
        command,
        shell=isinstance(command, str),
        cwd=cwd,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SLOW_MACHINE,
    )
    assert ran.returncode == 0, f"{command}\n{ran.stdout[-2000:]}\n{ran.stderr[-4000:]}"


def showing(what):
    """The pages on which there is some of it."""
    return [page for page in PAGES if what(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", showing(lambda text: python_of(text).strip()), ids=name)
def test_the_python_of_a_page_runs(page, tmp_path):
    code = python_of(page.read_text(encoding="utf-8"))
    assert code
    script = tmp_path / f"{page.stem}.py"
    script.write_text(code, encoding="utf-8")
    run([sys.executable, str(script)], tmp_path)


@pytest.mark.parametrize("page", showing(commands_of), ids=name)
def test_the_commands_of_a_page_run(page, tmp_path):
    commands = commands_of(page.read_text(encoding="utf-8"))
    assert commands
    for command in commands:
        run(command, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_links_of_a_page_lead_somewhere(page):
    targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_code_is_found_where_it_stands():
    page = "text\n```python\nx = 1\n```\n"
    page += "```bash\nmake run\nunspool next \\\n  hi\n$ unspool env\n```\n"
    assert python_of(page).splitlines()[2] == "x = 1"
    assert commands_of(page) == ["unspool next    hi", "unspool env"]
