"""Loaded models that are tiny and exact, and the default one for what needs real text."""

import json
import threading
from pathlib import Path
from types import SimpleNamespace

import models_zoo as zoo
import pytest
import tokenizers
import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, decoders, models, pre_tokenizers

from unspool.llm.facts import Facts
from unspool.llm.llm import LLM
from unspool.memories import MEMORIES
from unspool.text.pieces import CHAR_OF_BYTE
from unspool.text.tokenizer import Facts as WordFacts
from unspool.text.tokenizer import Tokenizer

CHAT = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def letters(size=12, extra=(), specials=(), **facts) -> Tokenizer:
    """LET: one-letter tokens a, b, c, ... (ids 0..), then `extra` pieces, then special tokens."""
    names = [*(chr(97 + i) for i in range(size)), *extra]
    return tokenizer(names, specials, decoders.Fuse(), **facts)


def byte_level(specials=(), **facts) -> Tokenizer:
    """One token per byte, id = byte."""
    made = [CHAR_OF_BYTE[i] for i in range(256)]
    cut = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return tokenizer(made, specials, decoders.ByteLevel(), cut, **facts)


def tokenizer(names, specials, decoder, cut=None, **facts) -> Tokenizer:
    return Tokenizer(backend(names, specials, decoder, cut), WordFacts(**facts))


def backend(names, specials, decoder, cut=None) -> tokenizers.Tokenizer:
    made = tokenizers.Tokenizer(models.BPE(vocab={n: i for i, n in enumerate(names)}, merges=[]))
    made.decoder = decoder
    if cut is not None:
        made.pre_tokenizer = cut
    made.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in specials])
    return made


def weights(table):
    """Every weight of MK(table), as a file holds them."""
    zeros = zoo.expected(zoo.configure(zoo.markov_config(len(table)))).items()
    whole = {name: torch.zeros(shape) for name, shape in zeros} | zoo.markov_weights(table.float())
    return {name: weight.clone() for name, weight in whole.items()}


@pytest.fixture(scope="session")
def kit():
    """Builders of tokenizers, and the weights of a checkpoint."""
    return SimpleNamespace(letters=letters, byte_level=byte_level, chat=CHAT, weights=weights)


def maker():
    """Makes loaded models, and closes all of them."""
    made = []

    def build(model, words=None, *, memory="dense", context=None, ends=(), defaults=None) -> LLM:
        facts = Facts("tiny", model.numerics, model.vocab, context or model.context, words,
                      frozenset(ends), defaults or {}, model.notes,
                      getattr(model, "layers", 0), getattr(model, "width", 0))
        made.append(LLM(model, facts, MEMORIES[memory](model.context)))
        return made[-1]

    yield build
    for lm in made:
        lm.close()


@pytest.fixture
def make():
    """`make(model, words, ...)` is a loaded model; all are closed at the end of the test."""
    yield from maker()


@pytest.fixture(scope="module")
def keep():
    """The same, for all tests of a file."""
    yield from maker()


@pytest.fixture
def cy(make):
    """CY(12) + LET: continues "a" with "bcdefghijklabc..."."""
    return make(zoo.markov(zoo.cycle(12)), letters())


@pytest.fixture
def wide(make):
    """A model of bytes that sampling finds many texts in."""
    return make(zoo.tiny(vocab_size=256, max_position_embeddings=512), byte_level())


@pytest.fixture
def folder(tmp_path):
    """`folder(table, words=True, **files)` writes an ordinary checkpoint of CY or another table."""

    def write(table=None, words=True, **files) -> Path:
        table = zoo.cycle(12) if table is None else torch.as_tensor(table)
        place = tmp_path / "letters"
        place.mkdir(exist_ok=True)
        save_file(weights(table), place / "model.safetensors")
        config = zoo.markov_config(len(table)) | files.pop("config", {})
        files = {"config": config, **files}
        for name, content in files.items():
            (place / f"{name}.json").write_text(json.dumps(content))
        if words:
            names = [chr(97 + i) for i in range(len(table))]
            backend(names, (), decoders.Fuse()).save(str(place / "tokenizer.json"))
        return place

    return write


class Gated:
    """A model whose forwards wait for leave: `open(n)` lets n of them run, `open()` all."""

    def __init__(self, model):
        self.model, self.leave, self.free = model, threading.Semaphore(0), False
        self.waiting = threading.Event()

    def __getattr__(self, name):
        return getattr(self.model, name)

    def score(self, spans):
        self.waiting.set()
        if not self.free:
            self.leave.acquire()
        return self.model.score(spans)

    def open(self, forwards=None):
        if forwards is None:
            self.free, forwards = True, 1
        self.leave.release(forwards)


@pytest.fixture
def gated(make):
    """CY(12) + LET behind a gate, and the gate; it is opened at the end of the test."""
    gate = Gated(zoo.markov(zoo.cycle(12)))
    lm = make(gate, letters())
    yield lm, gate
    gate.open()
