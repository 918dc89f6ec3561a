"""The tokenizer of the default model, built from its GGUF metadata once for all tests here."""
from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from unspool.core.errors import ModelError
from unspool.files.gguf import read_gguf
from unspool.files.store import find
from unspool.text.from_gguf import from_gguf
from unspool.text.tokenizer import Tokenizer


@pytest.fixture(scope="session")
def metadata() -> Mapping[str, object]:
    try:
        path = find("smollm2")
    except ModelError as error:
        pytest.skip(str(error))
    return read_gguf(path).metadata


@pytest.fixture(scope="session")
def smol(metadata: Mapping[str, object]) -> Iterator[Tokenizer]:
    tokenizer = from_gguf(metadata)
    yield tokenizer
    tokenizer.close()
