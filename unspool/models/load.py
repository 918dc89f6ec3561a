"""Loads a model: by one of our own families if there is one for it, else through transformers.

Decides the device and the number type, and records every fallback in the model's notes. It knows
no tokenizer.
"""
from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from unspool.core.errors import FormatError, ModelError, ParameterError
from unspool.core.sockets import Model
from unspool.files.folder import Source, inspect
from unspool.files.gguf import read_gguf
from unspool.files.safetensors import read_safetensors
from unspool.models.config import Config
from unspool.models.decoder import Decoder
from unspool.models.fingerprint import fingerprint
from unspool.models.gguf_config import config_of
from unspool.models.rope import UnsupportedError
from unspool.models.weights import EMBEDDING, HEAD, Array, Stored, take

TYPES = {"float32": torch.float32, "float64": torch.float64}


def load_model(
    source: Any,
    *,
    device: str | None = None,
    dtype: str | torch.dtype | None = None,
    numerics: str = "reference",
) -> Model:
    """A model from a Source, a path, the id of a cached Hugging Face model, or a loaded one.

    `device`: as torch names it (default: cuda, mps or cpu, the first there is); `dtype`: "float32"
    (default) or "float64". Raises ParameterError for another number type or numerics, ModelError
    and FormatError for a model that cannot be found or read.
    """
    if numerics != "reference":
        raise ParameterError(
            f"numerics = {numerics!r} is not in this version: use 'reference'", "numerics"
        )
    if not isinstance(source, str | Path | Source):
        wrapped: Model = _transformers().wrap(source, device, dtype)
        return wrapped
    where, kind = pick_device(device), number_type(dtype)
    if where.startswith("mps") and kind == torch.float64:
        raise ParameterError("dtype = 'float64' is not on mps: use device='cpu'", "dtype")
    if not isinstance(source, Source):
        source = inspect(cached(str(source)))
    if source.kind == "gguf":
        return _from_gguf(source, where, kind)
    try:
        config = configure(source.config)
    except UnsupportedError as reason:
        why = f"our own families lack {reason}"
        loaded: Model = _transformers().load(source, where, kind, (*source.notes, why))
        return loaded
    tensors = read_safetensors(source.weights)
    config = _untied_if_stored_so(config, tensors)
    arrays = take(tensors, config, wide=kind == torch.float64)
    return _decoder(config, arrays, where, kind, source.notes)


def _transformers() -> ModuleType:
    """The adapter, imported only when a model needs it."""
    try:
        return import_module("unspool.models.hf")
    except ImportError as error:
        raise ModelError(
            f"this model needs transformers, which is not installed ({error}): install the extra "
            "'torch'"
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


def pick_device(device: str | None) -> str:
    """The device asked for, else the best there is. Raises ParameterError for one there is not."""
    if device is None or device == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        if torch.empty(0, device=device).is_meta:
            raise RuntimeError("it holds no numbers")
    except (RuntimeError, AssertionError, TypeError) as error:
        first = str(error).splitlines()[0]
        raise ParameterError(
            f"device = {device!r} cannot be used ({first}): try 'cpu'", "device"
        ) from None
    return device


def number_type(dtype: str | torch.dtype | None) -> torch.dtype:
    """float32 unless float64 is asked for. Raises ParameterError for any other."""
    name = "float32" if dtype is None else str(dtype).removeprefix("torch.")
    if name not in TYPES:
        raise ParameterError(
            f"dtype = {name!r} is not in this version: numerics 'reference' computes in "
            f"{' or '.join(TYPES)}",
            "dtype",
        )
    return TYPES[name]


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


def _from_gguf(source: Source, where: str, kind: torch.dtype) -> Decoder:
    file = read_gguf(source.weights)
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
    return _decoder(config, take(file.tensors, config, gguf=True), where, kind, source.notes)


def _untied_if_stored_so(config: Config, tensors: Mapping[str, Stored]) -> Config:
    """A head stored beside the embedding it is tied to, with other numbers, is used as stored."""
    if config.tied and HEAD in tensors and EMBEDDING in tensors:
        head, embedding = tensors[HEAD].numpy(), tensors[EMBEDDING].numpy()
        return replace(config, tied=np.array_equal(head, embedding))
    return config


def _decoder(
    config: Config, arrays: Mapping[str, Array], where: str, kind: torch.dtype, notes: Any
) -> Decoder:
    weights = {name: torch.from_numpy(array).to(kind) for name, array in arrays.items()}
    mark = fingerprint(config, weights.items())
    on_device = {name: tensor.to(where) for name, tensor in weights.items()}
    return Decoder(config, on_device, mark, tuple(notes))
