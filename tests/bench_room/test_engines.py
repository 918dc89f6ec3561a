"""Where peers are looked for, how each is started, and who cannot read a model."""

import sys
from pathlib import Path

import pytest

from unspool.bench import engines
from unspool.bench.engines import WORKERS, Target, interpreter, ours, peer, readers
from unspool.bench.peers import PEERS
from unspool.bench.worker import WorkerError
from unspool.files.folder import Source


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A current folder and a place of the environment, both empty."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "there" / ".venv"))
    return tmp_path


def environment(folder: Path, name: str) -> str:
    path = folder / name / "bin" / "python"
    path.parent.mkdir(parents=True)
    path.touch()
    return str(path)


def target(path: Path, kind="gguf", model=None) -> Target:
    return Target(model, Source(kind, path, path), threads=2, context=160, rows=4)


def test_an_environment_is_beside_ours_or_in_the_current_folder(place):
    with pytest.raises(WorkerError, match=r"no \.venv-peers here.*make peers"):
        interpreter(".venv-peers")
    second = environment(place / "here", ".venv-peers")
    assert interpreter(".venv-peers") == second
    first = environment(place / "there", ".venv-peers")
    assert interpreter(".venv-peers") == first
    assert interpreter(".venv-peers", "/given/python") == "/given/python"


def test_an_environment_of_its_own_comes_before_the_one_given_for_all(place):
    assert interpreter(".venv-peers-vllm", "/given/python") == "/given/python"
    own = environment(place / "here", ".venv-peers-vllm")
    assert interpreter(".venv-peers-vllm", "/given/python") == own


@pytest.mark.parametrize("name", PEERS)
def test_every_peer_has_a_script_that_imports_no_unspool(name):
    text = (WORKERS / f"run_{name}.py").read_text(encoding="utf-8")
    assert "unspool" not in text and "from wire import" in text


@pytest.mark.parametrize("name", ["transformers", "llama_cpp", "openvino_genai"])
def test_a_peer_that_reads_gguf_is_given_the_file(name, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/ours")
    command = peer(name, target(tmp_path / "m.gguf"), "/given/python", tmp_path)
    assert command.words == ("/given/python", str(WORKERS / f"run_{name}.py"))
    assert command.settings == {"model": str(tmp_path / "m.gguf"), "threads": 2, "context": 160,
                                "rows": 4}
    assert command.env["PYTHONPATH"] is None and command.env["OMP_NUM_THREADS"] == "2"
    assert not command.notes


@pytest.mark.parametrize(("name", "reads"), [
    ("transformers", True), ("vllm", True), ("llama_cpp", False), ("openvino_genai", False)])
def test_a_safetensors_checkpoint_is_a_folder_that_some_read(name, reads, place):
    source = target(place / "model.safetensors", "safetensors")
    if reads:
        command = peer(name, source, "/given/python", place)
        assert command.settings["model"] == str(place)
    else:
        with pytest.raises(WorkerError, match="reads a GGUF file here"):
            peer(name, source, "/given/python", place)


def test_a_peer_without_gguf_gets_the_weights_converted_or_says_why_not(place, monkeypatch):
    asked = []
    monkeypatch.setattr(engines, "convert", lambda *words: asked.append(words))
    command = peer("vllm", target(place / "m.gguf"), "/given/python", place / "made")
    assert asked == [("vllm", "/given/python", str(place / "m.gguf"), place / "made")]
    assert command.settings["model"] == str(place / "made") and "dequantised" in command.notes[0]


def test_a_conversion_that_fails_is_a_reason(place):
    with pytest.raises(WorkerError, match=r"reads no GGUF, and converting it failed: .*python"):
        engines.convert("vllm", "/no/such/python", "m.gguf", place)
    with pytest.raises(WorkerError, match=r"converting it failed: \w"):
        engines.convert("vllm", sys.executable, str(place / "none.gguf"), place / "made")


def test_ours_goes_through_load_with_what_was_chosen(tmp_path):
    tiny = target(tmp_path, model="tiny")
    chosen = ours(tiny, "default", "mine", "/cache", kv="bf16", memory=None)
    assert chosen.settings == {"model": "tiny", "numerics": "default", "device": "cpu",
                               "kv": "bf16", "threads": 2}
    assert chosen.env["UNSPOOL_CACHE"] == "/cache" and chosen.name == "mine"
    reference = ours(target(tmp_path), "reference", "reference")
    assert "threads" not in reference.settings  # torch has them from the environment
    assert "UNSPOOL_CACHE" not in reference.env and reference.env["OMP_NUM_THREADS"] == "2"


def test_readers_run_and_those_that_cannot_are_named(started):
    worker = started(readers(1))
    assert "numpy" in worker.facts["readers"]
    read = worker.ask("read")
    assert read.keys() == set(worker.facts["readers"])
    assert all(gb_s > 0 for passes in read.values() for gb_s in passes)
    assert not set(worker.facts["missing"]) & read.keys()
