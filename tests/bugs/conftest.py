"""Lets the tests of this folder share `bug_zoo`."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def made():
    """Loaded models that are closed when the test is over."""
    models = []
    yield models
    for lm in models:
        lm.close()
