"""`load`: from a name, folder, file or model object to an LLM."""
from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from unspool.core.errors import FormatError, ModelError, ParameterError
from unspool.core.values import shown
from unspool.files import store
from unspool.files.folder import Source, inspect
from unspool.files.gguf import read_gguf
from unspool.llm.facts import Facts
from unspool.llm.llm import LLM
from unspool.memories import MEMORIES
from unspool.models.load import cached, load_model
from unspool.models.options import Options
from unspool.text.from_gguf import from_gguf
from unspool.text.from_json import from_folder
from unspool.text.tokenizer import Tokenizer


def load(  # noqa: PLR0913 - one keyword for each choice, so that help shows them all
    model: Any = None, *, numerics: str | None = None, device: str | None = None,
    dtype: Any = None, memory: str = "dense", tokenizer: Any = None, threads: int | None = None,
    kv: str = "f32", quantize: str | None = None,
) -> LLM:
    """Load a model with its tokenizer.

    `model`: None for the default, a known name (`unspool models ls`), a folder or file, the id of
    a cached Hugging Face model, or a loaded transformers model object. `tokenizer`: a folder, a
    Tokenizer or one of transformers, in place of the model's own. `memory`: "dense" grows with the
    text, "full" has room for the longest one from the start, "none" reads all of it at every token.

    `numerics`: "default" (exact to the stored weights, and the same bits whatever else runs),
    "fast" (8-bit arithmetic, no such promise) or "reference" (plain torch, in `dtype` "float32" or
    "float64"). Unset, it is "default" on the CPU, and "reference" on another `device` ("cuda",
    "mps"; unset, the best there is), with a `dtype`, or where only transformers runs the model.
    For "default" and "fast" on the CPU: `threads` (unset: all cores), `kv`, how keys and values are
    kept ("f32", "bf16" or "int8"), and `quantize` ("int8": weights stored in floats are rounded).
    Raises ModelError, FormatError or ParameterError, each naming what to do instead.
    """
    if memory not in list(MEMORIES):  # whatever was given, hashable or not
        raise ParameterError(f"memory={memory!r}: there are {', '.join(MEMORIES)}", "memory")
    options = Options(threads, kv, quantize)
    source = locate(model)
    if isinstance(source, Source):
        source = source.opened()
    with ThreadPoolExecutor(1) as beside_us:  # most of the model's loading is not Python's
        reading = beside_us.submit(tokenizer_of, source, tokenizer)
        loaded = load_model(source, device=device, dtype=dtype, numerics=numerics, options=options)
        try:
            words = reading.result()
        except BaseException:
            loaded.close()
            raise
    notes = loaded.notes
    if words is None:
        notes += ("there is no tokenizer: ids in, ids out, and every text is empty",)
    else:
        loaded.vocab = min(loaded.vocab, words.vocab_size)
    if not loaded.remembers:
        memory = "none"
    facts = Facts(name_of(model, source), loaded.numerics, loaded.vocab, loaded.context, words,
                  ends_of(source, words), configs_of(source)[1], notes, loaded.layers,
                  loaded.width, loaded.tied, remembered(loaded, memory),
                  loaded.context if memory == "full" else 0)
    return LLM(loaded, facts, MEMORIES[memory](loaded.context))


def remembered(model: Any, memory: str) -> int:
    """Bytes of the machine's memory that a model's keys and values of a token take, where they are
    kept in it and the model knows."""
    known = getattr(model, "token_bytes", 0) if model.device == "cpu" else 0
    return 0 if memory == "none" else int(known)


def locate(model: Any) -> Any:
    """A Source for what lies on this machine, or the object as it was given."""
    if model is None or (isinstance(model, str) and model in store.KNOWN):
        return inspect(store.find(model or store.DEFAULT))
    if isinstance(model, str) and model.startswith(("http://", "https://")):
        raise ModelError(f"{model}: a remote model is not in this version; load a folder or name")
    if isinstance(model, Path) or (isinstance(model, str) and os.path.exists(_home(model))):
        return inspect(model)
    if isinstance(model, str) and "/" not in model:
        known = ", ".join(store.KNOWN)
        raise ModelError(f"{shown(model)} is neither a known model ({known}) nor a path on this "
                         "machine: check the spelling (a cached Hugging Face id is owner/name)")
    return inspect(cached(model)) if isinstance(model, str) else model


def tokenizer_of(source: Any, given: Any) -> Tokenizer | None:
    if callable(getattr(given, "save_pretrained", None)):  # one of transformers
        with TemporaryDirectory() as place:
            given.save_pretrained(place)
            return tokenizer_of(source, place)
    if given is not None and not isinstance(given, str | Path | Tokenizer):
        raise ParameterError(f"tokenizer={shown(given)}: give the folder of a tokenizer.json, or a "
                             "tokenizer", "tokenizer")
    if isinstance(given, Tokenizer):
        return given
    if given is not None:
        found = from_folder(_home(given))
        if found is None:
            raise ModelError(f"tokenizer={str(given)!r}: there is no tokenizer.json: give the "
                             "folder of one")
        return found
    if isinstance(source, Source):
        if source.kind == "gguf":
            return from_gguf((source.file or read_gguf(source.weights)).metadata)
        return from_folder(source.folder)
    return beside(source)


def beside(model: Any) -> Tokenizer | None:
    """The tokenizer of the folder, or of the cached id, that a model object was loaded from."""
    name = str(getattr(getattr(model, "config", None), "name_or_path", ""))
    try:
        return from_folder(cached(name)) if name else None
    except (ModelError, FormatError):  # the object runs without; the notes say so
        return None


def ends_of(source: Any, words: Tokenizer | None) -> frozenset[int]:
    """End tokens that the config, the generation config and the tokenizer name, all of them."""
    found = set(words.eos_ids) if words is not None else set()
    for config in configs_of(source):
        value = config.get("eos_token_id")
        listed = value if isinstance(value, list | tuple) else [] if value is None else [value]
        if not all(type(i) is int for i in listed):
            raise FormatError(f"eos_token_id={shown(value)} in the model's config: it must be an "
                              "id or a list of ids")
        found |= set(listed)
    return frozenset(found)


def configs_of(source: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The model's config and generation config; empty where there is none."""
    if isinstance(source, Source):
        return source.config, source.generation_config
    generation = getattr(source, "generation_config", None)  # a model may have none
    return source.config.to_dict(), {} if generation is None else generation.to_diff_dict()


def name_of(model: Any, source: Any) -> str:
    """As it was asked for; a path by its last part; an object by where it came from."""
    if isinstance(source, Source):
        if model is None or model in store.KNOWN:
            return str(model or store.DEFAULT)
        here = _home(model)
        return os.path.basename(os.path.abspath(here)) if os.path.exists(here) else str(model)
    return str(source.config.name_or_path or type(source).__name__)


def _home(path: str | Path) -> str:
    return os.path.expanduser(path)
