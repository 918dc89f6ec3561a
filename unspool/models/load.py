"""Loads a model: finds its files and its config, and decides what runs it.

Three ways: our own families compiled for the CPU, the same in torch, and any causal model through
transformers. torch is imported only when one of the last two is chosen. Every fallback is recorded
in the model's notes. It knows no tokenizer.
"""
from __future__ import annotations

import importlib.util
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from glob import glob
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np

from unspool.core.errors import FormatError, ModelError, ParameterError
from unspool.core.sockets import Model
from unspool.core.values import shown
from unspool.files.folder import Source, inspect
from unspool.files.gguf import read_gguf
from unspool.files.safetensors import read_safetensors
from unspool.models.config import Config
from unspool.models.gguf_config import config_of
from unspool.models.options import Options
from unspool.models.rope import UnsupportedError
from unspool.models.weights import EMBEDDING, HEAD, Stored, check, take

NUMERICS = ("default", "fast", "reference")
TYPES = ("float32", "float64")
WITHOUT_TORCH = (
    "install the extra 'torch' (pip install 'unspool[torch]'); without it Llama, Mistral and Qwen "
    "models run on device 'cpu' in numerics 'default' or 'fast'"
)
DRIVERS = ("/dev/nvidia*", "/dev/dxg", "/dev/kfd")  # NVIDIA's, Windows' in its Linux, AMD's


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model of one of our own families, its tensors under the file's own names."""

    config: Config
    stored: Mapping[str, Stored]
    gguf: bool
    notes: tuple[str, ...]


def load_model(
    source: Any,
    *,
    device: str | None = None,
    dtype: Any = None,
    numerics: str | None = None,
    options: Options | None = None,
) -> Model:
    """A model from a Source, a path, the id of a cached Hugging Face model, or a loaded one.

    `device`: as torch names it, None: see `pick_device`. `dtype`: "float32" or "float64", for
    numerics 'reference'. `numerics`: one of NUMERICS, None: see `choose`. `options`: of the
    compiled CPU way; the others refuse them. Raises ParameterError for another value or what does
    not go together, ModelError and FormatError for a model that cannot be found, read or run here.
    """
    options = options or Options()
    _check_asked(numerics, dtype)
    if not isinstance(source, str | Path | Source):
        model: Model = _transformers(options).wrap(source, device, dtype)
        return _noted(model, numerics)
    where = pick_device(device)
    kind = number_type(dtype, where)
    if not isinstance(source, Source):
        source = inspect(cached(str(source)))
    try:
        found = _gguf(source) if source.kind == "gguf" else _safetensors(source)
    except UnsupportedError as lack:
        notes = (*source.notes, f"our own families lack {lack}")
        model = _transformers(options).load(source, where, kind or TYPES[0], notes)
        return _noted(model, numerics)
    way, chosen = choose(where, kind, numerics)
    if way == "native":
        return _native(found, chosen, options)
    options.refuse(f"numerics {chosen!r} on {where} runs in torch")
    return _torch(found, where, kind or TYPES[0], chosen)


def choose(
    device: str, dtype: str | None, numerics: str | None
) -> tuple[Literal["native", "torch"], str]:
    """What runs a model of our own families, and in which numerics.

    Unless asked for, numerics are 'default' on the CPU and 'reference' elsewhere, or where a
    number type was given. Raises ParameterError for 'fast' on another device than the CPU.
    """
    on_cpu = device.startswith("cpu")
    if numerics is None:
        numerics = "default" if on_cpu and dtype is None else "reference"
    if numerics == "reference":
        return "torch", numerics
    if on_cpu:
        return "native", numerics
    if numerics == "fast":
        raise ParameterError(
            f"numerics = 'fast' is for the CPU, not for device {device!r}: use 'default', or "
            "device='cpu'",
            "numerics",
        )
    return "torch", numerics


def _check_asked(numerics: object, dtype: object) -> None:
    known = isinstance(numerics, str) and numerics in NUMERICS
    if numerics is not None and not known:
        raise ParameterError(
            f"numerics = {shown(numerics)}: there are {', '.join(NUMERICS)}", "numerics"
        )
    if dtype is not None and numerics not in (None, "reference"):
        raise ParameterError(
            f"dtype = {shown(str(dtype))} with numerics = {numerics!r}: a number type belongs to "
            "numerics 'reference', leave one of the two out",
            "dtype",
        )


def pick_device(device: str | None) -> str:
    """The device asked for; for None or "auto" the best there is: cuda, mps or the CPU.

    Where nothing hints at another device, the CPU is the best without asking torch. Raises
    ParameterError for a device that is not there, ModelError for one that needs torch without it.
    """
    if device == "cpu":
        return device
    if device is not None and device != "auto":
        usable: str = _needing_torch(f"device {shown(device)}", "torch_load").usable(device)
        return usable
    if not another_device():
        return "cpu"
    best: str = _needing_torch("a device beside the CPU", "torch_load").best_device()
    return best


def another_device() -> bool:
    """Whether it is worth to import torch and ask: it is installed, and so is a GPU's driver.

    A driver shows by its files, on a Mac by the processor. It may be there without a GPU, which
    torch will find; a GPU whose driver is none of these has to be asked for by name.
    """
    try:
        if importlib.util.find_spec("torch") is None:
            return False
    except (ImportError, ValueError):  # hidden by an import hook
        return False
    if sys.platform == "darwin":
        return platform.machine() == "arm64"
    if sys.platform == "win32":
        return os.path.exists(os.path.expandvars(r"%SystemRoot%\System32\nvcuda.dll"))
    return any(glob(path) for path in DRIVERS)


def number_type(dtype: Any, device: str) -> str | None:
    """The name of a number type, torch's own among them. Raises ParameterError for any other."""
    if dtype is None:
        return None
    name = str(dtype).removeprefix("torch.")
    if name not in TYPES:
        raise ParameterError(
            f"dtype = {name!r} is not in this version: numerics 'reference' computes in "
            f"{' or '.join(TYPES)}",
            "dtype",
        )
    if name == "float64" and device.startswith("mps"):
        raise ParameterError("dtype = 'float64' is not on mps: use device='cpu'", "dtype")
    return name


def cached(name: str) -> str:
    """A path as it is; the id of a Hugging Face model as the folder of its cached snapshot."""
    if os.path.exists(os.path.expanduser(name)) or name.count("/") != 1 or name[0] in "./~":
        return name
    try:
        from huggingface_hub import snapshot_download

        return str(snapshot_download(name, local_files_only=True))
    except Exception as error:  # the library has a dozen kinds for "not here"
        raise ModelError(
            f"{name!r} is neither a path nor in the local Hugging Face cache "
            f"({type(error).__name__}): fetch it first, nothing is downloaded unasked"
        ) from None


def configure(raw: Mapping[str, Any]) -> Config:
    """The Config of a config in transformers' spelling, by the family file its model_type names.

    Raises UnsupportedError when there is no such file, or when the family lacks a feature.
    """
    name = raw.get("model_type")
    if not isinstance(name, str) or not name:
        raise FormatError("the model's config has no model_type: add the one of its family")
    found = name.isidentifier() and importlib.util.find_spec(f"unspool.models.{name}")
    family = import_module(f"unspool.models.{name}") if found else None
    if family is None or not (hasattr(family, "configure") and hasattr(family, "DEFAULTS")):
        raise UnsupportedError(f"model_type {name!r}")
    config: Config = family.configure(raw)
    return config


def _gguf(source: Source) -> Checkpoint:
    file = source.file or read_gguf(source.weights)
    embedding = file.tensors.get("token_embd.weight")
    if embedding is None:
        raise ModelError(f"{source.weights}: no token_embd.weight: it is not a whole model")
    try:
        config = configure(config_of(file.metadata, file.tensors.keys(), embedding.shape[0]))
    except UnsupportedError as reason:
        raise ModelError(f"{source.weights}: {reason} is not supported in a GGUF file") from None
    if "rope_freqs.weight" in file.tensors:
        factors = file.tensors["rope_freqs.weight"].dequantised()
        config = replace(config, rope=config.rope.divided(factors.tolist()))
    return Checkpoint(config, file.tensors, True, source.notes)


def _safetensors(source: Source) -> Checkpoint:
    config = configure(source.config)
    stored = read_safetensors(source.weights)
    if config.tied and HEAD in stored and EMBEDDING in stored:
        # A head stored beside the embedding it is tied to, with other numbers, is used as stored.
        tied = np.array_equal(stored[HEAD].numpy(), stored[EMBEDDING].numpy())
        config = replace(config, tied=tied)
    return Checkpoint(config, stored, False, source.notes)


def _native(found: Checkpoint, numerics: str, options: Options) -> Model:
    check(found.stored, found.config, gguf=found.gguf)
    from unspool.models.native import native  # and Numba with it

    return native(found.config, found.stored, gguf=found.gguf, numerics=numerics,
                  notes=found.notes, options=options)


def _torch(found: Checkpoint, device: str, dtype: str, numerics: str) -> Model:
    module = _needing_torch(f"numerics {numerics!r}", "torch_load")
    arrays = take(found.stored, found.config, gguf=found.gguf, wide=dtype == "float64")
    model: Model = module.load(
        found.config, arrays, device=device, dtype=dtype, numerics=numerics, notes=found.notes
    )
    return model


def _transformers(options: Options) -> ModuleType:
    """The adapter, for a model that is not of our own families."""
    options.refuse("a model that is not of our own families runs through transformers")
    return _needing_torch("a model that is not of our own families", "hf")


def _noted(model: Model, numerics: str | None) -> Model:
    """With a note when other numerics were asked for than transformers has."""
    if numerics not in (None, model.numerics):
        model.notes += (f"numerics {numerics!r} are not to be had through transformers",)
    return model


def _needing_torch(what: str, module: str) -> ModuleType:
    """A module of this room that imports torch."""
    try:
        return import_module(f"unspool.models.{module}")
    except ImportError as error:
        raise ModelError(
            f"{what} needs torch and transformers, which cannot be imported ({error}): "
            f"{WITHOUT_TORCH}"
        ) from None
