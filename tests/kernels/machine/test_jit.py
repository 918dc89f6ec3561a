"""Compiled code is kept between processes, is never stale, and its loss or damage is survived."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[3] / "unspool"
SCRIPT = """
import logging, sys
logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
from unspool.kernels.machine import jit
from unspool.kernels.machine.jit import kernel
from unspool.kernels.{module} import {name}
compiled = []
jit.WATCHERS.append(compiled.append)
print({name}({arguments}), compiled)
"""
PROBE = '''
from unspool.kernels.machine.jit import kernel
from unspool.kernels.helper import constant

@kernel("int64(int64)")
def probe(x):
    return x + constant()
'''
HELPER = '''
from unspool.kernels.machine.jit import inner

@inner
def constant():
    return {value}
'''


@pytest.fixture
def tree(tmp_path):
    """A copy of what the kernels need, with a kernel that calls a helper in another file."""
    root = tmp_path / "tree"
    for room in ("core", "kernels"):
        shutil.copytree(PACKAGE / room, root / "unspool" / room,
                        ignore=shutil.ignore_patterns("__pycache__"))
    (root / "unspool" / "__init__.py").write_text("")
    (root / "unspool" / "kernels" / "probe.py").write_text(PROBE)
    (root / "unspool" / "kernels" / "helper.py").write_text(HELPER.format(value=7))
    return root


def run(tree, cache, script=None, **environment):
    script = script or SCRIPT.format(module="probe", name="probe", arguments="1")
    known = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA", "UNSPOOL"))}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tree, text=True, capture_output=True, check=False,
        env={**known, "PYTHONPATH": str(tree), "UNSPOOL_CACHE": str(cache), **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def test_the_second_process_compiles_nothing(tree, tmp_path):
    assert run(tree, tmp_path / "cache")[0] == "8 ['probe']"
    assert run(tree, tmp_path / "cache")[0] == "8 []"


def test_an_edited_helper_in_another_file_is_never_stale(tree, tmp_path):
    assert run(tree, tmp_path / "cache")[0] == "8 ['probe']"
    (tree / "unspool" / "kernels" / "helper.py").write_text(HELPER.format(value=40))
    assert run(tree, tmp_path / "cache")[0] == "41 ['probe']"


def test_another_cpu_has_code_of_its_own(tree, tmp_path):
    generic = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    assert run(tree, tmp_path / "cache")[0].startswith("8")
    assert run(tree, tmp_path / "cache", **generic)[0].startswith("8")
    index = next((tmp_path / "cache").rglob("*probe.probe*.nbi"))
    assert len(list(index.parent.glob("*probe.probe*.nbc"))) == 2


@pytest.mark.parametrize("damage", [b"", b"no pickle at all", b"\x80\x05K"])
def test_damaged_code_is_compiled_anew(tree, tmp_path, damage):
    cache = tmp_path / "cache"
    run(tree, cache)
    for path in [*cache.rglob("*.nbi"), *cache.rglob("*.nbc")]:
        path.write_bytes(damage)
    out, warnings = run(tree, cache)
    assert out.startswith("8") and "made anew" in warnings
    run(tree, cache)
    assert run(tree, cache)[0] == "8 []"


def test_without_a_folder_every_process_compiles_and_says_so(tree, tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    for _ in range(2):
        out, warnings = run(tree, tmp_path / "cache")
        assert out == "8 ['probe']" and "compiled anew in every process" in warnings


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files there")
def test_a_full_disk_is_survived(tree, tmp_path):
    """A folder may be made, and no byte written."""
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    script = limit + SCRIPT.format(module="probe", name="probe", arguments="1")
    for _ in range(2):
        out, warnings = run(tree, tmp_path / "cache", script)
        assert out == "8 ['probe']" and "Traceback" not in warnings
