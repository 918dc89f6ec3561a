"""Equal numbers, equal names; any changed number, another name."""

import numpy as np
import pytest
from models_zoo import tiny

from unspool.models.fingerprint import WHOLE, fingerprint


def test_the_same_model_has_the_same_name():
    assert tiny().fingerprint == tiny().fingerprint
    assert len(tiny().fingerprint) == 32


def test_config_type_and_seed_all_count():
    models = [
        tiny(),
        tiny(seed=1),
        tiny(dtype="float32"),
        tiny("qwen2"),
        tiny("mistral", sliding_window=8),
        tiny("mistral", sliding_window=9),
        tiny(rope_theta=500.0),
        tiny(rms_norm_eps=1e-5),
    ]
    assert len({model.fingerprint for model in models}) == len(models)


def test_one_changed_number_anywhere_in_a_large_array_shows():
    big = np.random.default_rng(0).standard_normal(WHOLE // 4 + 1001).astype(np.float32)
    names = {fingerprint("", [("w", big)])}
    for place in (0, 12_345, len(big) // 2 + 1, len(big) - 1):
        other = big.copy()
        other[place] += 1
        names.add(fingerprint("", [("w", other)]))
    assert len(names) == 5


@pytest.mark.parametrize("odd", range(8))
def test_the_last_byte_of_a_large_array_shows(odd):
    stored = np.zeros(WHOLE + 8 * 5 + odd, np.uint8)
    other = stored.copy()
    other[-1] = 1
    assert fingerprint("", [("w", stored)]) != fingerprint("", [("w", other)])


def test_names_types_and_shapes_count():
    x = np.zeros((4, 2), np.float32)
    arrays = [("a", x), ("b", x), ("a", x.T), ("a", x.view(np.int32))]
    assert len({fingerprint("", [named]) for named in arrays}) == len(arrays)


def test_how_an_array_lies_in_memory_does_not_count():
    x = np.arange(12.0).reshape(3, 4)
    shifted = np.zeros(12 * 8 + 1, np.uint8)
    shifted[1:] = x.reshape(-1).view(np.uint8)
    unaligned = shifted[1:].view(np.float64).reshape(3, 4)
    names = {fingerprint("", [("w", a)]) for a in (x, x.T.copy().T, unaligned)}
    assert len(names) == 1


def test_scalars_and_empty_arrays_can_be_named():
    assert fingerprint("", [("w", np.float32(1).reshape(()))])
    assert fingerprint("", [("w", np.zeros((0, 3)))])
