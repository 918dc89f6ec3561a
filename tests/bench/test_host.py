"""The host's share is measured on a real step, and what is watched is left as it was."""
import time
from types import SimpleNamespace

import numpy as np
import pytest

from bench import host
from unspool.kernels.machine.jit import Kernel
from unspool.kernels.reading.facts import facts_of
from unspool.llm.facts import Facts

ROWS = np.random.default_rng(0).normal(0, 3, (4, 1500)).astype(np.float32)


@pytest.fixture
def small(monkeypatch):
    facts = Facts("replayed", "replayed", ROWS.shape[1], 256)
    monkeypatch.setattr(host, "ours", lambda: SimpleNamespace(facts=facts, context=256))
    monkeypatch.setattr(host, "TEXTS", ([1, 2], [3], [4, 5, 6]))
    monkeypatch.setattr(host, "STEPS", 3)
    monkeypatch.setattr(host, "RUNS", 1)


@pytest.mark.parametrize("way", host.WAYS)
@pytest.mark.parametrize("batch", [1, 4])
def test_a_step_has_both_shares(small, way, batch):
    python, kernels = host.takes(host.Replay(ROWS), batch, host.WAYS[way])
    assert python > 0 and kernels > 0


def test_kernels_are_timed_only_while_they_are_watched():
    before = Kernel.__call__
    with host.Watch() as watch:
        begun = time.perf_counter()
        facts_of(ROWS)
        spent = time.perf_counter() - begun
    assert 0 < watch.seconds <= spent and Kernel.__call__ is before
    facts_of(ROWS)
    assert watch.seconds <= spent


def test_a_text_that_ends_early_is_no_measurement(small):
    with pytest.raises(AssertionError, match="ended early"):
        host.takes(host.Replay(ROWS), 1, {"max_new_tokens": 2})
