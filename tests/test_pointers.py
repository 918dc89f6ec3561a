"""What the documents name is there: files, functions, rooms, dependencies."""

import ast
import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
POINTERS = sorted(set(re.findall(r"`((?:\w+/)+\w+\.py)(?:: ([\w.]+))?`", PAGE)))
STEPS = re.findall(r"^\d\. \*\*`(\S+\.py)`\*\*\.(.*?)(?=^\d\. |^Then )", PAGE, re.M | re.S)


def names_in(path):
    """Classes, functions and methods of a file, as `Class.method`."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            inner = (n.name for n in node.body if isinstance(n, ast.FunctionDef))
            found.update(f"{node.name}.{name}" for name in inner)
    return found


def where(file):
    return ROOT / file if (ROOT / file).exists() else ROOT / "unspool" / file


@pytest.mark.parametrize(("file", "name"), POINTERS)
def test_a_pointer_leads_somewhere(file, name):
    assert where(file).exists()
    assert not name or name in names_in(where(file))


def test_the_token_is_followed_through_five_files():
    assert len(STEPS) == 5
    for file, text in STEPS:
        bare = re.findall(r"`([A-Z]\w+\.\w+|[a-z]\w+_\w+)`", text)
        assert bare, f"{file}: no name to look for"
        assert set(bare) <= names_in(where(file))


def test_every_room_is_on_the_map():
    rooms = {path.parent.name for path in (ROOT / "unspool").glob("*/__init__.py")}
    house = re.search(r"## The house.*?```text\n(.*?)```", PAGE, re.S)[1]
    lines = [re.split(r"\s{4,}", line)[0].split() for line in house.splitlines()]
    drawn = {word for line in lines for word in line} & rooms
    assert drawn == rooms


def test_every_dependency_has_its_reason():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = chain(project["dependencies"], *project["optional-dependencies"].values())
    reasons = (ROOT / "docs" / "README.md").read_text(encoding="utf-8").partition("depends on")[2]
    names = {re.match(r"[\w.-]+", line)[0] for line in listed}
    assert names
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", reasons)] == []
