"""Equal numbers, equal names; any changed number, another name."""

import torch
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


def test_one_changed_number_anywhere_in_a_large_tensor_shows():
    big = torch.randn(WHOLE // 4 + 1001, generator=torch.Generator().manual_seed(0))
    names = {fingerprint("", [("w", big)])}
    for place in (0, 12_345, len(big) // 2 + 1, len(big) - 1):
        other = big.clone()
        other[place] += 1
        names.add(fingerprint("", [("w", other)]))
    assert len(names) == 5


def test_names_and_shapes_count():
    x = torch.zeros(4, 2)
    assert len({fingerprint("", [(n, t)]) for n in "ab" for t in (x, x.T.contiguous())}) == 4


def test_half_precision_can_be_named():
    assert fingerprint("", [("w", torch.ones(3, dtype=torch.bfloat16))])
