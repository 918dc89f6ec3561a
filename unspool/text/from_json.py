"""A tokenizer from a model folder: tokenizer.json and the small files beside it.

Knows the layout of Hugging Face folders, and follows what `AutoTokenizer` does with them.
"""
from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken

from unspool.core.errors import FormatError
from unspool.text.panics import no_panic
from unspool.text.tokenizer import Facts, Tokenizer

VOCABULARY_BYTES = 64 * 2**20  # the largest tokenizer.json in use has about 35 MB
OTHER_BYTES = 4 * 2**20  # the largest tokenizer_config.json has about 1 MB
_NAMED = tuple(f"{name}_token" for name in ("bos", "eos", "unk", "sep", "pad", "cls", "mask"))
_OTHER_FORMS = ("tokenizer.model", "spiece.model", "vocab.json", "vocab.txt", "tekken.json")


def from_folder(folder: str | Path) -> Tokenizer | None:
    """The tokenizer of a model folder, or None if it has none: ids in, ids out.

    Raises FormatError for a damaged file, or a folder that has a tokenizer in another form only.
    """
    folder = Path(folder)
    if not (folder / "tokenizer.json").exists():
        others = [name for name in _OTHER_FORMS if (folder / name).exists()]
        if others:
            raise FormatError(
                f"{folder.name} has {others[0]} but no tokenizer.json; write one with the "
                f"save_pretrained of its transformers tokenizer"
            )
        return None
    config = _object(folder / "tokenizer_config.json")
    if "added_tokens_decoder" not in config:  # an older folder: the special tokens lie apart
        config |= _object(folder / "special_tokens_map.json")
    backend = _backend(_bytes(folder / "tokenizer.json", VOCABULARY_BYTES), folder.name)
    names = [*_NAMED, *(n for n in config if n.endswith("_token") and n not in _NAMED)]
    named = {name: text for name in names if (text := _content(config.get(name))) is not None}
    _add_missing(backend, config, named.values())
    ids = {name: backend.token_to_id(text) for name, text in named.items()}
    starts, ends = _around(backend)
    return Tokenizer(
        backend,
        Facts(
            bos_id=ids.get("bos_token"),
            eos_ids=_ends(folder, ids.get("eos_token")),
            named=named,
            start_ids=starts,
            end_ids=ends,
            chat_template=_template(folder, config),
            pre="tokenizer.json",
        ),
    )


def _backend(data: bytes, where: str) -> tokenizers.Tokenizer:
    try:
        with no_panic():
            return tokenizers.Tokenizer.from_buffer(data)
    except Exception as error:
        raise FormatError(
            f"tokenizer.json of {where} cannot be read: {error}; fetch the file again"
        ) from None


def _add_missing(
    backend: tokenizers.Tokenizer, config: Mapping[str, Any], named: Iterable[str]
) -> None:
    """Adds the tokens that only tokenizer_config.json lists, in the order of their ids."""
    known = {token.content for token in backend.get_added_tokens_decoder().values()}
    listed = config.get("added_tokens_decoder") or {}
    if not isinstance(listed, dict) or not all(key.isdecimal() for key in listed):
        raise FormatError("added_tokens_decoder in tokenizer_config.json must map ids to tokens")
    missing = [_added(listed[key], set(named)) for key in sorted(listed, key=int)]
    missing = [token for token in missing if token.content not in known]
    known |= {token.content for token in missing}
    extra = config.get("extra_special_tokens") or config.get("additional_special_tokens") or []
    extra = list(extra.values()) if isinstance(extra, dict) else extra
    if not isinstance(extra, list):
        raise FormatError(f"extra_special_tokens in tokenizer_config.json is {extra!r}, not a list")
    extra = [text for value in extra if (text := _content(value)) is not None]
    more = [text for text in dict.fromkeys([*named, *extra]) if text not in known]
    missing += [AddedToken(text, special=True, normalized=False) for text in more]
    for token in missing:
        backend.add_special_tokens([token]) if token.special else backend.add_tokens([token])


def _added(entry: object, named: set[str]) -> AddedToken:
    text = _content(entry)
    if text is None or not isinstance(entry, dict):
        raise FormatError(f"added_tokens_decoder in tokenizer_config.json has {entry!r}")
    flags = ("lstrip", "rstrip", "single_word", "normalized")
    return AddedToken(
        text,
        special=bool(entry.get("special")) or text in named,
        **{flag: bool(entry[flag]) for flag in flags if flag in entry},
    )


def _around(backend: tokenizers.Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids that the post-processor puts before and behind a text.

    `add_bos_token` in tokenizer_config.json has no say where there is a tokenizer.json.
    """
    if backend.post_processor is None:
        return (), ()
    empty = backend.post_process(backend.encode("", add_special_tokens=False))
    if not empty.ids:
        return (), ()
    probe = next((text for text in ("a", "0", ".", " ") if _plain(backend, text)), None)
    if probe is None:
        return tuple(empty.ids), ()
    body, full = _plain(backend, probe), backend.encode(probe, add_special_tokens=True).ids
    before = next(i for i in range(len(full)) if full[i : i + len(body)] == body)
    return tuple(full[:before]), tuple(full[before + len(body) :])


def _plain(backend: tokenizers.Tokenizer, text: str) -> list[int]:
    ids: list[int] = backend.encode(text, add_special_tokens=False).ids
    return ids


def _ends(folder: Path, eos_id: int | None) -> frozenset[int]:
    """The end tokens: the generation config's, else the model config's, and the tokenizer's."""
    found: set[int] = set() if eos_id is None else {eos_id}
    for name in ("generation_config.json", "config.json"):
        value = _object(folder / name).get("eos_token_id")
        listed = value if isinstance(value, list) else [] if value is None else [value]
        if not all(type(i) is int and i >= 0 for i in listed):
            raise FormatError(f"eos_token_id in {name} is {value!r}; it must be an id or a list")
        if listed:
            return frozenset(found | set(listed))
    return frozenset(found)


def _template(folder: Path, config: Mapping[str, Any]) -> str | None:
    """The file chat_template.jinja, else the config's; of several the one named default."""
    path = folder / "chat_template.jinja"
    if path.exists():
        return _text(path)
    template = config.get("chat_template")
    if isinstance(template, list):
        entries = [entry for entry in template if isinstance(entry, dict)]
        defaults = [e.get("template") for e in entries if e.get("name") == "default"]
        template = defaults[0] if defaults else None
    if template is None or isinstance(template, str):
        return template
    kind = type(template).__name__
    raise FormatError(f"chat_template in tokenizer_config.json is {kind}; it must be a string")


def _content(value: object) -> str | None:
    """The text of a token, written as a string or as an object."""
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) and value else None


def _object(path: Path) -> dict[str, Any]:
    """A JSON object; {} if there is no such file."""
    if not path.exists():
        return {}
    try:
        found = json.loads(_text(path))
        json.dumps(found, ensure_ascii=False).encode()  # an escape may stand for half a character
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path.name} is not JSON text: {error}; fetch the file again") from None
    if not isinstance(found, dict):
        raise FormatError(f"{path.name} holds {type(found).__name__}; it must be a JSON object")
    return found


def _text(path: Path) -> str:
    try:
        return _bytes(path, OTHER_BYTES).decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"{path.name} cannot be read: {error}; fetch the file again") from None


def _bytes(path: Path, most: int) -> bytes:
    """A whole plain file: a pipe of its name would let us wait, and a device might never end."""
    try:
        if not path.is_file():
            raise FormatError(f"{path.name} is not a plain file; fetch it again")
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise FormatError(f"{path.name} cannot be read: {error}; fetch the file again") from None
    if len(data) > most:
        raise FormatError(f"{path.name} has more than {most:,} bytes, the most that are read")
    return data
