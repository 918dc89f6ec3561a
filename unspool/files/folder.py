"""What a model path is: a GGUF file, a safetensors file, or a folder with one of them.

Refuses by name whatever would need code from the model, another library's unpacking of the
weights, or a pickle. Opens no weights and knows no model family.
"""
from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from unspool.core.errors import ModelError
from unspool.files.gguf import GGUF, read_gguf
from unspool.files.safetensors import INDEX, SINGLE, within
from unspool.files.strict_json import read_object

PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt")
NEVER_WEIGHTS = ("adapter_model.safetensors",)

# Files in which an auto_map names Python files of the model.
CODE_POINTERS = ("config.json", "generation_config.json", "tokenizer_config.json",
                 "processor_config.json", "preprocessor_config.json",
                 "image_processor_config.json", "video_preprocessor_config.json")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a model's parts are.

    `weights` goes to `read_gguf` or `read_safetensors`. `config` and `generation_config` are the
    JSON files of those names; both are empty for a GGUF, which carries its own. `notes` says what
    in the folder is left unused. `file`: the GGUF, where it was opened already.
    """

    kind: Literal["gguf", "safetensors"]
    path: Path
    weights: Path
    config: dict[str, Any] = field(default_factory=dict)
    generation_config: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    file: GGUF | None = None

    def opened(self) -> Source:
        """With its GGUF open, so that who needs its metadata and who needs its tensors share it."""
        return replace(self, file=read_gguf(self.weights)) if self.kind == "gguf" else self

    @property
    def folder(self) -> Path:
        """Where the tokenizer's files would be."""
        return self.weights.parent


def inspect(path: str | Path) -> Source:
    """What the path is, as a Source.

    Raises ModelError when there is no model, or one that is refused by name (pickles, adapters,
    code from the model, quantised checkpoints); FormatError when a JSON file is damaged.
    """
    path = Path(os.path.expanduser(path))  # pathlib's own raises for a user who is not there
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except (OSError, ValueError):
        is_folder = is_file = False
    if is_folder:
        return _folder(path)
    if not is_file:
        raise ModelError(f"{path}: no such file or folder: check the path")
    if path.suffix.lower() == ".gguf":
        return Source("gguf", path, path)
    if path.suffix.lower() == ".safetensors":
        return _safetensors(path, path.parent, path)
    raise ModelError(f"{path}: {_advice(path.suffix.lower())}: "
                     "give a .gguf or .safetensors file, or the folder of a model")


def _advice(suffix: str) -> str:
    if suffix in PICKLES:
        return "pickled weights are never read; convert them to safetensors first"
    return f"files of type {suffix or '(none)'} are not read"


def _folder(folder: Path) -> Source:
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise ModelError(f"{folder}: cannot be read ({error.strerror}): check its permissions"
                         ) from None
    ggufs = [name for name in names if name.endswith(".gguf")]
    weights = _weights(folder, names)
    if weights is not None:
        notes = tuple(f"{name} is not used: the folder's {weights.name} is" for name in ggufs)
        return _safetensors(folder, folder, weights, notes)
    if len(ggufs) == 1:
        return Source("gguf", folder, within(folder, ggufs[0]))
    if ggufs:
        raise ModelError(f"{folder}: {len(ggufs)} GGUF files ({', '.join(ggufs[:4])}): "
                         "give the path of one of them")
    raise _no_weights(folder, names)


def _weights(folder: Path, names: list[str]) -> Path | None:
    """The safetensors file or the index of several; None when there is neither."""
    found = [n for n in names if n.endswith(".safetensors") and n not in NEVER_WEIGHTS]
    if SINGLE in found:
        return within(folder, SINGLE)
    if INDEX in names:
        return within(folder, INDEX)
    if len(found) > 1:
        raise ModelError(f"{folder}: {len(found)} safetensors files and no {INDEX}: "
                         "fetch the index, or give the path of one file")
    return within(folder, found[0]) if found else None


def _no_weights(folder: Path, names: list[str]) -> ModelError:
    if "adapter_config.json" in names:
        return ModelError(f"{folder}: only a LoRA adapter, without its base model: merge the two "
                          "(peft's merge_and_unload) and give the merged folder")
    pickles = [name for name in names if name.endswith(PICKLES)]
    if pickles:
        return ModelError(f"{folder}: {_advice('.bin')} (found {', '.join(pickles[:3])})")
    return ModelError(f"{folder}: no weights: a model's folder holds config.json and "
                      f"{SINGLE}, or one .gguf file")


def _safetensors(path: Path, folder: Path, weights: Path, notes: tuple[str, ...] = ()) -> Source:
    adapter = (folder / "adapter_config.json").exists()
    if weights.name in NEVER_WEIGHTS or (adapter and not (folder / "config.json").exists()):
        raise _no_weights(folder, ["adapter_config.json"])
    if not (folder / "config.json").exists():
        raise ModelError(f"{folder}: {weights.name} without config.json: put the model's "
                         "config.json beside it")
    configs = {}
    for name in CODE_POINTERS:
        if (folder / name).exists() or (folder / name).is_symlink():
            configs[name] = read_object(within(folder, name))
            _refuse_code(folder / name, configs[name])
    if (folder / "custom_generate").exists():
        raise ModelError(f"{folder}: custom_generate holds Python code for decoding, and code from "
                         "a model is never run: remove it to use this program's strategies")
    config = configs["config.json"]
    if any(_found(config, key) for key in ("quantization_config", "compression_config")):
        raise ModelError(f"{folder / 'config.json'}: a quantized checkpoint "
                         f"({_method(config)}) is not read: "
                         "use the original weights or a GGUF file of the model")
    if adapter:
        notes += ("adapter_config.json is not used: only the base weights are loaded",)
    return Source("safetensors", path, weights, config, configs.get("generation_config.json", {}),
                  notes)


def _refuse_code(path: Path, config: dict[str, Any]) -> None:
    for key in ("auto_map", "trust_remote_code"):
        if _found(config, key):
            raise ModelError(f"{path}: {key} asks for Python code from the model, which is never "
                             "run: use a version of the model without it, or remove the entry if "
                             "its model_type needs none")


def _method(config: dict[str, Any]) -> str:
    for found in _found(config, "quantization_config"):
        if isinstance(found, dict) and "quant_method" in found:
            return str(found["quant_method"])[:40]
    return "unknown method"


def _found(value: object, key: str) -> list[object]:
    """Values of a key anywhere inside, so that nesting hides nothing; empty ones are left out."""
    found, pending = [], [value]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if node.get(key):
                found.append(node[key])
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)
    return found
