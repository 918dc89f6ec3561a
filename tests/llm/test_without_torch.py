"""From a file to a text without torch: it is not imported, and it need not be there.

Each test looks into a process of its own, where nothing has been imported yet.
"""

import json
import subprocess
import sys

import models_zoo as zoo
import pytest

from unspool.files import store

# Ends with what was imported of the two; BLOCKED makes importing them fail.
SEEN = "\nimport sys\nprint(*[m for m in ('torch', 'transformers') if m in sys.modules])"
BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers"):
            raise ImportError(f"{name} is not there")
sys.meta_path.insert(0, Blocked())
"""


def said(code: str) -> list[str]:
    """The lines that a fresh interpreter prints."""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def used(model, settings="") -> str:
    """Code that loads a model, writes and looks; `model`, if any, continues "a" with "bcd"."""
    return (
        f"import unspool\nlm = unspool.load({model!r}, device='cpu'{settings})\n"
        "text = lm.generate('a', max_new_tokens=3, temperature=0).text\n"
        "assert len(lm.next('a').top(5)) == 5\n"
        "print(lm.numerics, text)\nlm.close()\n"
    )


@pytest.fixture
def default_model():
    if store.models()[0][1] is None:
        pytest.skip("the default weights are not here: unspool models fetch smollm2")


@pytest.mark.usefixtures("default_model")
def test_the_default_model_imports_no_torch():
    (line, seen) = said(used(None) + SEEN)
    assert line.startswith("default ") and seen == ""


@pytest.mark.parametrize("settings", ["", ", numerics='fast'"])
def test_a_safetensors_folder_imports_no_torch(folder, settings):
    numerics = "fast" if settings else "default"
    assert said(used(str(folder()), settings) + SEEN) == [f"{numerics} bcd", ""]


@pytest.mark.usefixtures("default_model")
@pytest.mark.parametrize("verb", ["next", "run"])
def test_the_command_line_imports_no_torch(verb):
    line = [verb, "The color of sky is", "--json", "--device", "cpu"]
    code = f"from unspool.cli import main\ntry:\n    main({line})\nexcept SystemExit as end:\n"
    out, seen = said(f"{code}    assert not end.code{SEEN}")
    assert json.loads(out)["numerics"] == "default" and seen == ""


def test_a_folder_is_read_where_torch_is_not_installed(folder):
    assert said(BLOCKED + used(str(folder()))) == ["default bcd"]


@pytest.mark.parametrize("settings", [
    "numerics='reference'", "dtype='float64'", "device='cuda'", "model=gpt2", "model=object()",
])
def test_what_needs_torch_says_how_to_install_it(folder, tmp_path, settings):
    place, gpt2 = str(folder()), str(tmp_path / "gpt2")
    if "gpt2" in settings:
        zoo.save(zoo.hf_gpt2(), gpt2)
    code = (
        f"{BLOCKED}\nimport unspool\ngpt2 = {gpt2!r}\n"
        f"given = dict(model={place!r}) | dict({settings})\n"
        "try:\n    unspool.load(**given)\n"
        "except unspool.ModelError as error:\n    print(error)\n"
    )
    [line] = said(code)
    assert "pip install 'unspool[torch]'" in line and "numerics 'default'" in line


def test_the_facts_of_a_report_need_no_torch():
    code = f"{BLOCKED}\nfrom unspool.cli import main\nmain(['env', '--json'])"
    facts = json.loads("\n".join(said(code)))
    assert "cannot be imported" in facts["devices"]["torch"] and facts["compiled for"]["cpu"]
