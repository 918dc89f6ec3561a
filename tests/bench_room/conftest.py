"""A tiny model with a tokenizer that any text goes through, and engines written for a test."""

import sys
from types import SimpleNamespace

import models_zoo as zoo
import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from unspool.bench.engines import WORKERS
from unspool.bench.worker import Command, Worker
from unspool.text.pieces import CHAR_OF_BYTE

HEAD = f"import os, subprocess, sys, time\nsys.path.insert(0, {str(WORKERS)!r})\n"
TAIL = "\nfrom wire import Clock, serve\nserve(load)\n"


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """The folder of a random Llama of 256 tokens, one for each byte."""
    folder = tmp_path_factory.mktemp("tiny")
    zoo.save(zoo.hf_tiny(vocab_size=256, max_position_embeddings=512), folder)
    vocab = {CHAR_OF_BYTE[i]: i for i in range(256)}
    words = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=[]))
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    words.decoder = decoders.ByteLevel()
    words.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture
def engine(tmp_path):
    """`engine(code)` is the command of an engine whose script defines `load(settings)`."""

    def make(code: str, name: str = "other", **env) -> Command:
        path = tmp_path / f"{name}.py"
        path.write_text(HEAD + code + TAIL)
        return Command(name, (sys.executable, str(path)), {"model": "none"}, env)

    return make


@pytest.fixture
def started():
    """`started(command)` is a worker that is ended with the test."""
    workers = []

    def start(command: Command) -> Worker:
        workers.append(Worker(command))
        return workers[-1]

    yield start
    for worker in workers:
        worker.close()


@pytest.fixture
def lines():
    """What was said, and where to say it."""
    said: list[str] = []
    return SimpleNamespace(said=said, say=said.append)
