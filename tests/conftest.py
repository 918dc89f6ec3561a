"""Lets every test import the shared models of `models_zoo`; one compute thread, also in children.

On a busy machine a second thread makes tiny models many times slower.
"""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))

# A busy machine is no fault of the code: time is never what a test is about.
settings.register_profile("unspool", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unspool")


@pytest.fixture(scope="session")
def smol():
    """The default model, once for all tests."""
    import unspool

    try:
        model = unspool.load()
    except unspool.ModelError as error:
        pytest.skip(f"the default weights are missing: {error}")
    with model as lm:
        yield lm
