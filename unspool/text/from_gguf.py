"""A tokenizer from the metadata of a GGUF file, a plain dict. Does not read files.

The rules named by `tokenizer.ggml.pre` follow llama.cpp's table of expressions, applied one after
the other; the names of the keys are those of the GGUF specification.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

from unspool.core.errors import FormatError
from unspool.text.panics import no_panic
from unspool.text.sentencepiece import merges_by_score
from unspool.text.tokenizer import Facts, Tokenizer

NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4  # `tokenizer.ggml.token_type`
# Other tools end a text at these too, whatever single id the file names.
END_NAMES = (
    *("<|endoftext|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|end|>"),
    *("<end_of_turn>", "<EOT>", "<|EOT|>", "<｜end▁of▁sentence｜>"),
)
_CUTS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_T = TypeVar("_T")


def _split(expression: str) -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Split(Regex(expression), "isolated")


def _gpt2() -> list[pre_tokenizers.PreTokenizer]:
    return [pre_tokenizers.ByteLevel(add_prefix_space=False)]  # its own expression is GPT-2's


def _expression(digits: str) -> list[pre_tokenizers.PreTokenizer]:
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return [_split(_CUTS % digits), plain]


def _default() -> list[pre_tokenizers.PreTokenizer]:
    threes = [_split(r"\p{N}+"), _split("[0-9][0-9][0-9]")]
    words = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return [_split(r"[\p{P}\$\+<=>\^~\|]+"), _split(words), *threes, plain]


PRE_RULES: Mapping[str, Callable[[], list[pre_tokenizers.PreTokenizer]]] = {
    "smollm": lambda: [pre_tokenizers.Digits(individual_digits=True), *_gpt2()],
    "llama-bpe": lambda: _expression(r"\p{N}{1,3}"),
    "qwen2": lambda: _expression(r"\p{N}"),
    "gpt-2": _gpt2,
    "default": _default,
}


def from_gguf(metadata: Mapping[str, object]) -> Tokenizer:
    """The tokenizer that the metadata describes.

    `tokenizer.ggml.model` is `gpt2` (byte-level BPE by merges) or `llama` (sentencepiece BPE by
    scores). Raises FormatError for another model, an unknown `pre`, or metadata that contradict
    themselves.
    """
    kind = _read(metadata, "model", str, "")
    tokens = _tokens(metadata)
    types = [NORMAL] * len(tokens)
    if "tokenizer.ggml.token_type" in metadata:
        types = _of_each(metadata, "token_type", int, len(tokens))
    if kind == "gpt2":
        backend, pre = _byte_level(metadata, tokens)
    elif kind == "llama":
        backend, pre = _sentencepiece(metadata, tokens, types), "sentencepiece"
    else:
        raise FormatError(
            f"tokenizer.ggml.model is {kind!r}; supported are 'gpt2' and 'llama': convert the "
            f"model with one of them or load its original folder"
        )
    marked = [
        AddedToken(token, special=kind == CONTROL, normalized=False)
        for token, kind in zip(tokens, types, strict=True)
        if kind in (CONTROL, USER_DEFINED) and token
    ]
    backend.add_special_tokens([token for token in marked if token.special])
    backend.add_tokens([token for token in marked if not token.special])
    return Tokenizer(backend, _facts(metadata, tokens, types, pre))


def _byte_level(
    metadata: Mapping[str, object], tokens: Sequence[str]
) -> tuple[tokenizers.Tokenizer, str]:
    pre = _read(metadata, "pre", str, "default")
    if pre not in PRE_RULES:
        raise FormatError(
            f"tokenizer.ggml.pre is {pre!r}; supported are {', '.join(PRE_RULES)}: another rule "
            f"would cut text into wrong tokens, so load the model's original folder"
        )
    lines = _list(metadata, "merges", str)
    merges = [(line[:cut], line[cut + 1 :]) for line in lines if (cut := line.find(" ", 1)) > 0]
    if len(merges) != len(lines):
        bad = next(line for line in lines if line.find(" ", 1) <= 0)
        raise FormatError(f"tokenizer.ggml.merges has {bad!r}; a merge is two tokens and a space")
    backend = _bpe(tokens, merges, ignore_merges=pre == "llama-bpe")
    if pre == "qwen2":
        backend.normalizer = normalizers.NFC()  # as its original tokenizer does
    backend.pre_tokenizer = pre_tokenizers.Sequence(PRE_RULES[pre]())
    backend.decoder = decoders.ByteLevel()
    return backend, pre


def _sentencepiece(
    metadata: Mapping[str, object], tokens: Sequence[str], types: Sequence[int]
) -> tokenizers.Tokenizer:
    scores = _of_each(metadata, "scores", float, len(tokens))
    unknown = next((t for t, kind in zip(tokens, types, strict=True) if kind == UNKNOWN), None)
    plain = [i for i, kind in enumerate(types) if kind in (NORMAL, USER_DEFINED)]
    merges = merges_by_score([(tokens[i], scores[i]) for i in plain])
    backend = _bpe(tokens, merges, unk_token=unknown, fuse_unk=True, byte_fallback=True)
    spaces: list[normalizers.Normalizer] = [normalizers.Replace(" ", "▁")]
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    if _read(metadata, "add_space_prefix", bool, True):
        spaces.insert(0, normalizers.Prepend("▁"))
        steps.append(decoders.Strip(" ", 1, 0))
    backend.normalizer = normalizers.Sequence(spaces)
    backend.decoder = decoders.Sequence(steps)
    return backend


def _bpe(
    tokens: Sequence[str], merges: list[tuple[str, str]], **options: Any
) -> tokenizers.Tokenizer:
    vocab = {token: i for i, token in enumerate(tokens)}
    for one, other in merges:
        if one + other not in vocab:
            raise FormatError(f"tokenizer.ggml.merges do not fit the tokens: {one + other!r} is "
                              "none; fetch the file again")
    try:
        with no_panic():
            return tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=merges, **options))
    except Exception as error:
        raise FormatError(f"tokenizer.ggml.merges do not fit the tokens: {error}") from error


def _facts(
    metadata: Mapping[str, object], tokens: Sequence[str], types: Sequence[int], pre: str
) -> Facts:
    ids = {
        name: _id(metadata, key, len(tokens))
        for name, key in (
            ("bos_token", "bos_token_id"),
            ("eos_token", "eos_token_id"),
            ("unk_token", "unknown_token_id"),
            ("pad_token", "padding_token_id"),
            ("eot", "eot_token_id"),
            ("eom", "eom_token_id"),
        )
    }
    bos, eos = ids["bos_token"], ids["eos_token"]
    starts = _read(metadata, "add_bos_token", bool, pre in ("sentencepiece", "llama-bpe"))
    ends = _read(metadata, "add_eos_token", bool, False)
    named_ends = {i for i in (eos, ids["eot"], ids["eom"]) if i is not None}
    known_ends = {i for i, t in enumerate(tokens) if types[i] == CONTROL and t in END_NAMES}
    named = {n: tokens[i] for n, i in ids.items() if i is not None and n.endswith("_token")}
    return Facts(
        bos_id=bos,
        eos_ids=frozenset(named_ends | known_ends),
        named=named,
        start_ids=(bos,) if starts and bos is not None else (),
        end_ids=(eos,) if ends and eos is not None else (),
        chat_template=_read_template(metadata),
        pre=pre,
    )


def _read_template(metadata: Mapping[str, object]) -> str | None:
    template = metadata.get("tokenizer.chat_template")
    if template is None or isinstance(template, str):
        return template
    raise FormatError(f"tokenizer.chat_template is {type(template).__name__}; it must be a string")


def _read(metadata: Mapping[str, object], key: str, kind: type[_T], default: _T) -> _T:
    value = metadata.get(f"tokenizer.ggml.{key}", default)
    if not isinstance(value, kind):
        found = type(value).__name__
        raise FormatError(f"tokenizer.ggml.{key} is {found}; it must be {kind.__name__}")
    return value


def _list(metadata: Mapping[str, object], key: str, kind: type[_T]) -> list[_T]:
    values = metadata.get(f"tokenizer.ggml.{key}")
    if not isinstance(values, list) or not all(isinstance(value, kind) for value in values):
        raise FormatError(f"tokenizer.ggml.{key} must be a list of {kind.__name__}")
    return values


def _tokens(metadata: Mapping[str, object]) -> list[str]:
    tokens = _list(metadata, "tokens", str)
    if len(set(tokens)) != len(tokens):
        twice = Counter(tokens).most_common(1)[0][0]
        raise FormatError(f"tokenizer.ggml.tokens has {twice!r} twice; each id needs its own text")
    return tokens


def _of_each(metadata: Mapping[str, object], key: str, kind: type[_T], length: int) -> list[_T]:
    values = _list(metadata, key, kind)
    if len(values) != length:
        raise FormatError(
            f"tokenizer.ggml.{key} has {len(values)} entries; the vocabulary has {length}"
        )
    return values


def _id(metadata: Mapping[str, object], key: str, length: int) -> int | None:
    if f"tokenizer.ggml.{key}" not in metadata:
        return None
    value = _read(metadata, key, int, 0)
    if not 0 <= value < length:
        raise FormatError(f"tokenizer.ggml.{key} is {value}; ids run from 0 to {length - 1}")
    return value
