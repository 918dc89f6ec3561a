"""Bandwidth, bytes and shares."""

import numpy as np
import pytest

from unspool.bench.roofline import PACKED, Kind, Weights, bandwidth, share, weights_of
from unspool.files.folder import inspect
from unspool.kernels.weights.formats import FORMATS


def test_the_bandwidth_is_the_best_readers_median():
    assert bandwidth({"a": [10.0, 30.0, 11.0], "b": [12.0, 12.0]}) == 12.0
    assert bandwidth({"a": []}) is None and bandwidth({}) is None


def test_a_share_is_bytes_times_rate_of_the_bandwidth():
    assert share(100_000_000, 200.0, 25.0) == pytest.approx(0.8)
    assert share(1, 1.0, None) is None


def test_the_reference_reads_float32_and_the_others_what_is_stored():
    weights = Weights({"Q4_1": Kind(2, 200, 320), "Q5_0": Kind(1, 22, 32), "F32": Kind(1, 40, 10)})
    assert weights.read_by("reference") == 4 * 362
    assert weights.read_by("default") == 200 + 4 * 32 + 40  # no kernel reads Q5_0 as it is


def test_packed_types_are_those_with_kernels():
    assert FORMATS.keys() == PACKED


@pytest.fixture
def checkpoint(tmp_path):
    from safetensors.numpy import save_file

    def write(*names):
        tensors = {name: np.ones((4, 8), np.float32) for name in names}
        save_file(tensors, tmp_path / "model.safetensors")
        (tmp_path / "config.json").write_text("{}")
        return inspect(tmp_path)

    return write


EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"


def test_a_tied_embedding_is_read_as_the_head_and_an_untied_one_is_not(checkpoint):
    assert weights_of(checkpoint(EMBEDDING, "model.norm.weight")).read_by("default") == 2 * 128
    assert weights_of(checkpoint(EMBEDDING, HEAD, "model.norm.weight")).read_by("default") == 256


def test_what_a_token_reads_of_the_default_model():
    from unspool.files.store import models

    path = models()[0][1]
    if path is None:
        pytest.skip("the default weights are not here: unspool models fetch smollm2")
    weights = weights_of(inspect(path))
    assert {row["type"]: row["tensors"] for row in weights.json()} == {
        "Q4_1": 210, "Q8_0": 1, "F32": 61}
    assert weights.read_by("default") == 96_576_768
    assert weights.read_by("reference") == 4 * 134_515_008
