"""What a path is, and what is refused by name before any weight is read."""
import json
import os
import pickle
import shutil

import numpy as np
import pytest
from safetensors.numpy import save_file

from unspool.core.errors import FormatError, ModelError
from unspool.files.folder import inspect
from unspool.files.safetensors import INDEX, read_safetensors

CONFIG = {"model_type": "llama", "hidden_size": 8}


class Marker:
    """Unpickled, it writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def write(folder, config=CONFIG, weights="model.safetensors", **files):
    if config is not None:
        files["config.json"] = config
    for name, content in files.items():
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    if weights:
        save_file({"w": np.zeros(2, np.float32)}, folder / weights)
    return folder


def test_a_folder_with_one_safetensors_file(tmp_path):
    source = inspect(write(tmp_path, **{"generation_config.json": {"top_k": 5}}))
    assert (source.kind, source.path, source.folder) == ("safetensors", tmp_path, tmp_path)
    assert source.weights == tmp_path / "model.safetensors"
    assert source.config == CONFIG and source.generation_config == {"top_k": 5}
    assert source.notes == () and read_safetensors(source.weights).keys() == {"w"}


def test_a_file_of_another_name_and_a_path_as_text(tmp_path):
    write(tmp_path, weights="consolidated.safetensors")
    assert inspect(str(tmp_path)).weights.name == "consolidated.safetensors"
    by_file = inspect(tmp_path / "consolidated.safetensors")
    assert by_file.kind == "safetensors" and by_file.config == CONFIG


def test_shards_are_read_through_the_index(tmp_path):
    write(tmp_path, weights="model-1.safetensors",
          **{INDEX: {"weight_map": {"w": "model-1.safetensors"}}})
    source = inspect(tmp_path)
    assert source.weights == tmp_path / INDEX and source.folder == tmp_path
    assert read_safetensors(source.weights).keys() == {"w"}


def test_gguf_files_and_folders(tmp_path):
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    for given in (tmp_path, tmp_path / "m.gguf"):
        source = inspect(given)
        assert (source.kind, source.weights) == ("gguf", tmp_path / "m.gguf")
        assert source.config == {}
    (tmp_path / "n.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelError, match=r"2 GGUF files \(m\.gguf, n\.gguf\): give the path"):
        inspect(tmp_path)


def test_what_is_left_unused_is_noted(tmp_path):
    write(tmp_path, **{"adapter_config.json": {}, "m.gguf": "GGUF", "pytorch_model.bin": "x"})
    notes = " / ".join(inspect(tmp_path).notes)
    assert "m.gguf is not used" in notes and "only the base weights are loaded" in notes


REFUSED = {
    "nothing": ({}, {"config": None, "weights": None}, "no weights: a model's folder holds"),
    "no weights": ({}, {"weights": None}, "no weights"),
    "no config": ({}, {"config": None}, "without config.json: put the model's config.json"),
    "two files, no index": ({"x": 1}, {}, None),
    "LoRA only": ({"adapter_config.json": {"r": 8}},
                  {"config": None, "weights": "adapter_model.safetensors"}, "only a LoRA adapter"),
    "LoRA with a config": ({"adapter_config.json": {"r": 8}},
                           {"weights": "adapter_model.safetensors"}, "merge_and_unload"),
    "LoRA in a file of another name": ({"adapter_config.json": {}}, {"config": None}, "LoRA"),
    "quantised": ({}, {"config": {"quantization_config": {"quant_method": "awq", "bits": 4}}},
                  r"a quantized checkpoint \(awq\).*original weights or a GGUF"),
    "quantised within": ({}, {"config": {"text_config": {"quantization_config": {"bits": 4}}}},
                         "unknown method"),
    "compressed": ({}, {"config": {"compression_config": {"format": "x"}}}, "quantized"),
    "auto_map": ({}, {"config": {"auto_map": {"AutoModel": "m.M"}}}, "config.json: auto_map asks"),
    "auto_map within": ({}, {"config": {"a": [{"auto_map": {"AutoModel": "m.M"}}]}}, "auto_map"),
    "trust_remote_code": ({}, {"config": {"trust_remote_code": True}}, "trust_remote_code asks"),
    "config of a list": ({}, {"config": [1]}, "must be an object"),
    "config of NaN": ({"config.json": '{"a": NaN}'}, {"config": None}, "NaN"),
    "config nested": ({"config.json": '{"a":' + "[" * 90_000 + "]" * 90_000 + "}"},
                      {"config": None}, "nested too deeply"),
    "config twice": ({"config.json": '{"a": 1, "a": 2}'}, {"config": None}, "'a' occurs twice"),
    **{f"auto_map in {name}": ({name: {"auto_map": {"X": "m.M"}}}, {},
                               f"{name}: auto_map asks for Python code")
       for name in ["tokenizer_config.json", "processor_config.json", "preprocessor_config.json",
                    "generation_config.json"]},
}
del REFUSED["two files, no index"]


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name(name, tmp_path):
    files, how, said = REFUSED[name]
    write(tmp_path, **how, **files)
    with pytest.raises(ModelError, match=said) as caught:
        inspect(tmp_path)
    assert "\n" not in str(caught.value)


def test_two_files_without_an_index(tmp_path):
    write(tmp_path, weights="a.safetensors")
    write(tmp_path, weights="b.safetensors")
    with pytest.raises(ModelError, match=f"2 safetensors files and no {INDEX}"):
        inspect(tmp_path)


@pytest.mark.parametrize("value", [None, {}, False])
def test_empty_entries_ask_for_nothing(value, tmp_path):
    write(tmp_path, {**CONFIG, "quantization_config": value, "auto_map": value})
    assert inspect(tmp_path).kind == "safetensors"


@pytest.mark.parametrize("suffix", ["bin", "pt", "pth", "pkl", "pickle", "ckpt"])
def test_pickles_are_refused_and_never_run(suffix, tmp_path):
    marker = tmp_path / "marker"
    write(tmp_path, weights=None)
    path = tmp_path / f"pytorch_model.{suffix}"
    path.write_bytes(pickle.dumps(Marker(marker)))
    for given in (tmp_path, path):
        with pytest.raises(ModelError, match="pickled weights are never read; convert them"):
            inspect(given)
    assert not marker.exists()


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_named_safetensors_is_refused_and_never_run(protocol, tmp_path):
    marker = tmp_path / "marker"
    write(tmp_path, weights=None)
    content = pickle.dumps([Marker(marker), bytes(99)], protocol=protocol)
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(FormatError, match="a pickle" if protocol > 1 else "damaged"):
        read_safetensors(inspect(tmp_path).weights)
    assert not marker.exists()
    pickle.loads(content)  # the bait is live
    assert marker.exists()


def test_code_for_decoding_is_refused(tmp_path):
    write(tmp_path)
    (tmp_path / "custom_generate").mkdir()
    (tmp_path / "custom_generate/generate.py").write_text("raise SystemExit")
    with pytest.raises(ModelError, match="custom_generate holds Python code"):
        inspect(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer_config.json"])
def test_links_out_of_the_folder_are_refused(name, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    write(folder, **{"tokenizer_config.json": {}})
    shutil.move(folder / name, tmp_path / name)
    (folder / name).symlink_to(tmp_path / name)
    with pytest.raises(FormatError, match="a link that leaves the model's folder"):
        inspect(folder)


@pytest.mark.parametrize("given", ["", "nothing/here", "a\0b", "x" * 5000])
def test_paths_that_lead_nowhere(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=r"no such file or folder|no weights"):
        inspect(given)


def test_files_that_are_no_weights(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"x")
    with pytest.raises(ModelError, match=r"files of type \.onnx are not read: give a \.gguf"):
        inspect(tmp_path / "model.onnx")
