"""Lets the tests of this folder share `bug_zoo`."""
import sys
from pathlib import Path

import pytest

import unspool
from unspool.core.errors import ModelError
from unspool.files.store import find

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def smol():
    """The default model, once for all tests here."""
    try:
        find("smollm2")
    except ModelError as error:
        pytest.skip(f"the default weights are missing: {error}")
    with unspool.load() as lm:
        yield lm


@pytest.fixture
def made():
    """Loaded models that are closed when the test is over."""
    models = []
    yield models
    for lm in models:
        lm.close()
