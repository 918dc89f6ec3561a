"""`load`: from a name, folder, file or model object to an LLM."""
from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from unspool.core.errors import ModelError, ParameterError
from unspool.files import store
from unspool.files.folder import Source, inspect
from unspool.files.gguf import read_gguf
from unspool.llm.facts import Facts
from unspool.llm.llm import LLM
from unspool.memories import MEMORIES
from unspool.models.load import load_model
from unspool.text.from_gguf import from_gguf
from unspool.text.from_json import from_folder
from unspool.text.tokenizer import Tokenizer


def load(model: Any = None, *, numerics: str = "reference", device: str | None = None,
         dtype: str | None = None, memory: str = "dense", tokenizer: Any = None) -> LLM:
    """Load a model with its tokenizer.

    `model`: None for the default, a known name (`unspool models ls`), a folder or file, the id of
    a cached Hugging Face model, or a loaded transformers model object. `tokenizer`: a folder, or a
    Tokenizer, in place of the model's own. `memory`: "dense" or "none".
    Raises ModelError, FormatError or ParameterError, each naming what to do instead.
    """
    if memory not in MEMORIES:
        raise ParameterError(f"memory={memory!r}: there are {', '.join(MEMORIES)}", "memory")
    source = locate(model)
    loaded = load_model(source, device=device, dtype=dtype, numerics=numerics)
    words = tokenizer_of(source, tokenizer)
    if words is not None:
        loaded.vocab = min(loaded.vocab, words.vocab_size)
    if not loaded.remembers:
        memory = "none"
    facts = Facts(name_of(model, source), loaded.numerics, loaded.vocab, loaded.context, words,
                  ends_of(source, words), defaults_of(source), loaded.notes)
    return LLM(loaded, facts, MEMORIES[memory]())


def locate(model: Any) -> Any:
    """A Source for what lies on this machine, or the object or id as it was given."""
    if model is None or (isinstance(model, str) and model in store.KNOWN):
        return inspect(store.find(model or store.DEFAULT))
    if isinstance(model, str) and model.startswith(("http://", "https://")):
        raise ModelError(f"{model}: a remote model is not in this version; load a folder or name")
    if isinstance(model, str | Path) and Path(model).expanduser().exists():
        return inspect(model)
    if isinstance(model, str) and "/" not in model:
        known = ", ".join(store.KNOWN)
        raise ModelError(f"{model!r} is neither a known model ({known}) nor a path on this "
                         "machine: check the spelling")
    return model


def tokenizer_of(source: Any, given: Any) -> Tokenizer | None:
    if isinstance(given, Tokenizer):
        return given
    if given is not None:
        return from_folder(given)
    if isinstance(source, Source):
        if source.kind == "gguf":
            return from_gguf(read_gguf(source.weights).metadata)
        return from_folder(source.folder)
    return None


def ends_of(source: Any, words: Tokenizer | None) -> frozenset[int]:
    """End tokens that the config, the generation config and the tokenizer name, all of them."""
    found = set(words.eos_ids) if words is not None else set()
    for config in configs_of(source):
        value = config.get("eos_token_id")
        found |= set(value if isinstance(value, Iterable) else () if value is None else (value,))
    return frozenset(int(i) for i in found)


def defaults_of(source: Any) -> dict[str, Any]:
    return dict(configs_of(source)[1])


def configs_of(source: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The model's config and generation config; empty where there is none."""
    if isinstance(source, Source):
        return source.config, source.generation_config
    pair = [getattr(source, name, None) for name in ("config", "generation_config")]
    config, generation = (c.to_diff_dict() if c is not None else {} for c in pair)
    return config, generation


def name_of(model: Any, source: Any) -> str:
    if model is None:
        return store.DEFAULT
    if isinstance(model, str | Path):
        return str(model) if str(model) in store.KNOWN else Path(model).name
    return str(getattr(getattr(model, "config", None), "_name_or_path", "")) or type(model).__name__
