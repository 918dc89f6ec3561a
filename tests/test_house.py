"""The house rules that no linter checks: sizes, light imports, no code from data, one sandbox."""

import ast
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import unspool

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted((ROOT / "unspool").rglob("*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}
HEAVY = ("torch", "transformers", "numpy", "numba", "tokenizers", "plotly", "rich", "jinja2")
VERBS = ("run", "chat", "next", "score", "explain", "bench", "models", "env")


def name_of(node: ast.expr) -> str:
    """`a.b.c` of a name or an attribute, "" of anything else."""
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def last_name(node: ast.expr) -> str:
    return name_of(node).rpartition(".")[2]


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def loaded_by(code: str) -> list[str]:
    """Heavy packages that a fresh interpreter has imported after `code`."""
    probe = (
        "import sys, contextlib, io\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        "    try:\n"
        f"        {code}\n"
        "    except SystemExit as exit:\n"
        "        assert not exit.code, exit.code\n"
        f"print(*[name for name in {HEAVY} if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


def test_importing_the_package_imports_nothing_heavy():
    assert loaded_by("import unspool") == []


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_imports_nothing_heavy(verb):
    args = [verb, "--help"] if verb else ["--help"]
    assert loaded_by(f"from unspool.cli import main; main({args})") == []


def test_files_and_functions_are_short(tmp_path):
    too_long = runpy.run_path(str(ROOT / "scripts" / "check_sizes.py"))["too_long"]
    assert list(too_long(ROOT)) == []

    (tmp_path / "unspool").mkdir()
    (tmp_path / "unspool" / "long.py").write_text("def f():\n" + "    x = 1\n" * 50 + "\n" * 250)
    assert len(list(too_long(tmp_path))) == 2
    (tmp_path / "unspool" / "long.py").write_text("def f():\n" + "    x = 1\n" * 49 + "\n" * 250)
    assert list(too_long(tmp_path)) == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_runs_code_that_came_as_data(path):
    unpicklers = {"pickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
    assert not {name.split(".")[0] for name in imported(TREES[path])} & unpicklers
    runners = {"eval", "exec", "torch.load", "numpy.load", "np.load", "yaml.load"}
    assert not {name_of(call.func) for call in calls(TREES[path])} & runners
    trusting = [
        call.lineno
        for call in calls(TREES[path])
        for keyword in call.keywords
        if keyword.arg == "trust_remote_code"
        and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)
    ]
    assert trusting == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_says_what_it_is(path):
    empty = path.name == "__init__.py" and not TREES[path].body
    assert empty or ast.get_docstring(TREES[path]), f"{path.name} opens without a docstring"


def test_one_function_makes_a_template_environment():
    kinds = {"Environment", "NativeEnvironment", "SandboxedEnvironment"}
    kinds |= {"ImmutableSandboxedEnvironment", "Template"}
    for tree in TREES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and {last_name(base) for base in node.bases} & kinds:
                kinds.add(node.name)
    makers = [
        f"{path.relative_to(ROOT)}:{node.name}"
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any(last_name(call.func) in kinds for call in calls(node))
    ]
    assert len(makers) == 1, makers


def test_the_rooms_are_the_floors_of_the_contract():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = " ".join(project["tool"]["importlinter"]["contracts"][0]["layers"])
    named = set(layers.replace("|", " ").replace("(", " ").replace(")", " ").split())
    rooms = {path.name for path in (ROOT / "unspool").iterdir() if (path / "__init__.py").exists()}
    assert rooms <= named


def test_the_changelog_has_this_version():
    assert f"## [{unspool.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
