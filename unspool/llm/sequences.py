"""Values that name tokens, read as sequences of ids: biases, bad words, the breakers of DRY.

Each is checked here to the last item, and a refusal names the parameter.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

from unspool.core.errors import ParameterError, PromptError
from unspool.core.values import shown
from unspool.llm.facts import Facts
from unspool.llm.prompts import whole
from unspool.text.tokenizer import Tokenizer

Ids = tuple[int, ...]
Biases = tuple[tuple[Ids, float], ...]
MOST = 2**16  # entries of a parameter
MOST_BIAS = 1e9
BREAKERS = ("\n", ":", '"', "*")
LONGEST_BREAKER, LONGEST_TAIL = 40, 20  # characters, tokens
MOST_BREAKERS, MOST_SETS = 64, 64  # each is looked for in the whole vocabulary, and remembered
_BROKEN: WeakKeyDictionary[Tokenizer, dict[tuple[str, ...], tuple[Ids, ...]]] = WeakKeyDictionary()


def refuse(name: str, what: str) -> NoReturn:
    raise ParameterError(f"{name}{what}", name)


def ids_of(facts: Facts, name: str, value: Any) -> Ids:
    """A list of ids, each in the vocabulary."""
    out = []
    for item in value:
        token = whole(item)
        if token is None:
            refuse(name, f": {shown(item)} is no token id; ids are whole numbers")
        if not 0 <= token < facts.vocab:
            refuse(name, f": token id {shown(token)} is outside the vocabulary; ids run from 0 to "
                         f"{facts.vocab - 1}")
        out.append(token)
    if not out:
        refuse(name, "=[]: an empty list of ids names no token; leave it out")
    return tuple(out)


def words_of(facts: Facts, name: str, text: str) -> Ids:
    """The ids of a text, as it is spelt behind other text."""
    facts.needs_text(name)
    if not text:
        refuse(name, "='': an empty text names no token; leave it out")
    try:
        ids = tuple(facts.words(text, start=False))
    except PromptError as error:
        refuse(name, f"={shown(text)}: {error}")
    if not ids:
        refuse(name, f"={shown(text)}: this model has no tokens that spell it; leave it out")
    return ids


def attempt(facts: Facts, text: str) -> Ids:
    """The ids of a text, none if it cannot be spelt."""
    try:
        return tuple(facts.words(text, start=False))
    except PromptError:
        return ()


def entries(name: str, value: Any, what: str) -> list[Any]:
    """The items of a list that is not too long."""
    if not isinstance(value, list | tuple | set | frozenset):
        refuse(name, f"={shown(value)}: must be {what}; give that")
    if len(value) > MOST:
        refuse(name, f" with {len(value)} entries: must be at most {MOST}; give fewer")
    return list(value)


def number_of(value: Any) -> float:
    """The number that a value is, of any library; NaN for others: texts, arrays, truth values."""
    if isinstance(value, str | bytes) or is_truth(value) or bool(getattr(value, "ndim", 0)):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def is_truth(value: Any) -> bool:
    """Whether it is True or False, of any library."""
    return str(getattr(value, "dtype", type(value).__name__)).endswith("bool")


# ── logit_bias ───────────────────────────────────────────────────────────────────────────────────
def biases(facts: Facts, value: Any, each: bool = False) -> Biases:
    """(ids, number) for every entry; minus infinity forbids. `each`: a text's number goes to each
    of its tokens.

    `{id or text or (ids): number}`, where a text of digits is an id, or `[[id, text or ids,
    number]]`, where it is a text. False stands for minus infinity.
    """
    name = "logit_bias"
    if isinstance(value, Mapping):
        if len(value) > MOST:
            refuse(name, f" with {len(value)} entries: must be at most {MOST}; give fewer")
        pairs = [(int(key) if digits(key) else key, number) for key, number in value.items()]
    else:
        pairs = list(map(pair_of, entries(name, value, "{token: number} or [[token, number]]")))
    found = []
    for key, number in pairs:
        keys = [biased(facts, key)]
        if each and isinstance(key, str):
            keys = [(token,) for token in keys[0]]
        found += [(ids, bias(key, number)) for ids in keys]
    return tuple(found)


def writable(value: Any) -> Any:
    """The same biases, as JSON can write them: a sequence is no name of a field, and minus infinity
    no number. What is no such value stays."""
    pairs = list(value.items()) if isinstance(value, Mapping) else value
    if not isinstance(pairs, list | tuple) or not all(
            isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        return value
    out = [(written(key, isinstance(value, Mapping)), False if number_of(x) == -math.inf else x)
           for key, x in pairs]
    if isinstance(value, Mapping):
        named = {key: x for key, x in out if not isinstance(key, list)}
        if len(named) == len(out):
            return named
    return [[key, x] for key, x in out]


def written(key: Any, named: bool) -> Any:
    """A key as an id, a list of ids or a text. `named`: a text of digits is an id."""
    if isinstance(key, list | tuple):
        return list(key)
    token = int(key) if named and digits(key) else whole(key)
    return key if token is None else token


def digits(key: Any) -> bool:
    return isinstance(key, str) and key.isascii() and key.isdigit() and len(key) < 20


def pair_of(item: Any) -> tuple[Any, Any]:
    if not isinstance(item, list | tuple) or len(item) != 2:
        refuse("logit_bias", f": {shown(item)} is no pair; write [token, number]")
    return item[0], item[1]


def biased(facts: Facts, key: Any) -> Ids:
    if isinstance(key, str):
        return words_of(facts, "logit_bias", key)
    return ids_of(facts, "logit_bias", key if isinstance(key, list | tuple) else [key])


def bias(key: Any, number: Any) -> float:
    plain = number_of(number)
    if is_truth(number) and not getattr(number, "ndim", 0) and not number:
        return -math.inf
    if plain != -math.inf and not abs(plain) <= MOST_BIAS:
        refuse("logit_bias", f": {shown(key)} has {shown(number)}; must be a number within "
                             f"{MOST_BIAS:.0f} of 0, or false to forbid it")
    return plain


# ── bad_words ────────────────────────────────────────────────────────────────────────────────────
def banned(facts: Facts, value: Any) -> tuple[Ids, ...]:
    """The sequences that are not to be written. Of a text every spelling: as it stands, behind a
    space, and in the middle of a word."""
    name = "bad_words"
    texts = [value] if isinstance(value, str) else entries(
        name, value, "texts, or lists of token ids")
    found: dict[Ids, None] = {}
    for text in texts:
        if isinstance(text, str):
            found |= dict.fromkeys(spellings(facts, name, text))
        elif isinstance(text, list | tuple):
            found[ids_of(facts, name, text)] = None
        else:
            refuse(name, f": {shown(text)} must be a text or a list of ids; of one id, [id]")
    return tuple(found)


def spellings(facts: Facts, name: str, text: str) -> Iterator[Ids]:
    """The ids of a text at the start, behind a space, and behind something that is no space."""
    bare = text.lstrip(" ")
    yield words_of(facts, name, bare or text)
    if bare:
        line, both = attempt(facts, "\n"), attempt(facts, f"\n{bare}")
        inner = both[len(line):] if both[:len(line)] == line else ()
        yield from filter(None, (attempt(facts, f" {bare}"), inner))


# ── DRY ──────────────────────────────────────────────────────────────────────────────────────────
def breakers(facts: Facts, value: Any) -> tuple[Ids, ...]:
    """The sequences of tokens in which one of the texts occurs: a token that holds it whole, or one
    that ends in its beginning, with the tokens of the rest (as in llama.cpp)."""
    name = "dry_sequence_breakers"
    texts = [value] if isinstance(value, str) else entries(
        name, BREAKERS if value is None else value, "a list of texts")
    for text in texts:
        if not isinstance(text, str) or not 0 < len(text) <= LONGEST_BREAKER:
            refuse(name, f": {shown(text)} must be a text of 1..{LONGEST_BREAKER} characters; "
                         "take it out")
    if not texts or (facts.tokenizer is None and value is None):
        return ()
    if len(texts) > MOST_BREAKERS:
        refuse(name, f" with {len(texts)} entries: must be at most {MOST_BREAKERS}; give fewer")
    known = _BROKEN.setdefault(facts.needs_text(name), {})
    key = tuple(texts)
    found = known.get(key)
    if found is None:
        found = tuple(dict.fromkeys(s for text in texts for s in broken(facts, name, text)))
        if len(known) >= MOST_SETS:
            known.clear()
        known[key] = found
    return found


def broken(facts: Facts, name: str, text: str) -> Iterator[Ids]:
    data, piece = text.encode(), facts.piece(skip_special_tokens=False)
    for token in range(facts.vocab):
        try:
            word = piece(token)
        except PromptError:  # the model has more ids than the tokenizer
            return
        if data in word:
            yield (token,)
            continue
        for size in range(1, len(text)):
            if word.endswith(text[:size].encode()):
                yield token, *words_of(facts, name, text[size:])[:LONGEST_TAIL]


# ── must_contain ─────────────────────────────────────────────────────────────────────────────────
def clauses(facts: Facts, value: Any) -> tuple[tuple[Ids, ...], ...]:
    """For each word the sequences of ids that spell it, of which one must be written.

    An item is a text, which may stand at the start or behind a space; a list of ids; or a list of
    these, of which one is enough. Raises ParameterError.
    """
    name = "must_contain"
    items = entries(name, [value] if isinstance(value, str) else value, "a list of words")
    if not items:
        refuse(name, "=[]: an empty list of words; name one, or leave it out")
    return tuple(tuple(dict.fromkeys(spelt(facts, name, item))) for item in items)


def spelt(facts: Facts, name: str, item: Any, deep: bool = False) -> list[Ids]:
    if isinstance(item, str):
        found = [words_of(facts, name, item)]
        if not item[0].isspace():
            found.append(attempt(facts, f" {item}"))
        return [ids for ids in found if ids]
    if not isinstance(item, list | tuple) or not item:
        refuse(name, f": {shown(item)} is no word; give a text, a list of ids, or a list of them")
    if whole(item[0]) is not None:
        return [ids_of(facts, name, item)]
    if deep:
        refuse(name, f": {shown(item)} is a list within a list within a list; at most two deep")
    return [ids for one in item for ids in spelt(facts, name, one, deep=True)]
