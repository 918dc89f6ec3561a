"""The parameter `watermark`: its forms, its defaults, and that each field is checked by name."""
import pytest
from transformers import SynthIDTextWatermarkingConfig, WatermarkingConfig

from unspool.core.errors import ParameterError
from unspool.rules import gumbel_watermark, kgw, synthid
from unspool.rules.watermarks import detect, watermark_of
from unspool.rules.watermarks.gumbel import Source
from unspool.rules.watermarks.kgw import Greens
from unspool.rules.watermarks.synthid import Tournament

KEYS = [5, 5, 9]


def test_each_kind_has_the_defaults_of_its_origin():
    assert watermark_of({"kind": "kgw"}, 64) == kgw(
        2.0, data=Greens(64, 0.25, 15485863, False, 1))
    assert watermark_of({"kind": "gumbel"}, 64) == gumbel_watermark(data=Source(15485863, 4))
    assert watermark_of({"kind": "synthid", "keys": KEYS}, 64) == synthid(
        data=Tournament((5, 5, 9), 5, 0, 2**16, 1024, False))  # equal keys are two depths


def test_transformers_configs_are_taken_as_they_are():
    theirs = WatermarkingConfig(0.5, 1.5, 99, "selfhash", 3)
    want = kgw(1.5, data=Greens(64, 0.5, 99, True, 3))
    assert watermark_of(theirs, 64) == watermark_of(theirs.to_dict(), 64) == want
    theirs = SynthIDTextWatermarkingConfig(3, KEYS, 7, 11, 1000, True)
    want = synthid(data=Tournament((5, 5, 9), 3, 11, 1000, 7, True))
    assert watermark_of(theirs, 64) == watermark_of(theirs.to_dict(), 64) == want


@pytest.mark.parametrize(("config", "label"), [
    (None, "watermark"), ("kgw", "watermark"), ({}, "watermark.kind"), ([1], "watermark"),
    ({1: 2}, "watermark"), (WatermarkingConfig, "watermark"),
    ({"kind": "Kgw"}, "watermark.kind"), ({"kind": 3}, "watermark.kind"),
    ({"kind": "gumbel", "key": 3}, "watermark.key"),
    ({"kind": "kgw", "ngram_len": 3}, "watermark.ngram_len"),
    ({"bias": 1, "delta": 3}, "watermark.delta"),
    ({"kind": "kgw", "greenlist_ratio": 0}, "watermark.greenlist_ratio"),
    ({"kind": "kgw", "greenlist_ratio": 1}, "watermark.greenlist_ratio"),
    ({"kind": "kgw", "greenlist_ratio": 0.001}, "watermark.greenlist_ratio"),
    ({"kind": "kgw", "greenlist_ratio": float("nan")}, "watermark.greenlist_ratio"),
    ({"kind": "kgw", "bias": -1}, "watermark.bias"),
    ({"kind": "kgw", "bias": float("inf")}, "watermark.bias"),
    ({"kind": "kgw", "hashing_key": 1.5}, "watermark.hashing_key"),
    ({"kind": "kgw", "hashing_key": 2**63}, "watermark.hashing_key"),
    ({"kind": "kgw", "hashing_key": -1}, "watermark.hashing_key"),
    ({"kind": "kgw", "seeding_scheme": "left"}, "watermark.seeding_scheme"),
    ({"kind": "kgw", "context_width": 0}, "watermark.context_width"),
    ({"kind": "gumbel", "context_width": True}, "watermark.context_width"),
    ({"kind": "gumbel", "hashing_key": "k"}, "watermark.hashing_key"),
    ({"kind": "synthid"}, "watermark.keys"), ({"ngram_len": 4}, "watermark.keys"),
    ({"kind": "synthid", "keys": []}, "watermark.keys"),
    ({"kind": "synthid", "keys": 5}, "watermark.keys"),
    ({"kind": "synthid", "keys": list(range(300))}, "watermark.keys"),
    ({"kind": "synthid", "keys": [1, "2"]}, r"watermark.keys\[1\]"),
    ({"keys": KEYS, "ngram_len": 1}, "watermark.ngram_len"),
    ({"keys": KEYS, "context_history_size": -1}, "watermark.context_history_size"),
    ({"keys": KEYS, "sampling_table_size": 2**24 + 1}, "watermark.sampling_table_size"),
    ({"keys": KEYS, "sampling_table_seed": -1}, "watermark.sampling_table_seed"),
    ({"keys": KEYS, "skip_first_ngram_calls": 1}, "watermark.skip_first_ngram_calls"),
    ({"keys": KEYS, "debug_mode": True}, "watermark.debug_mode"),
])
def test_what_is_wrong_is_refused_by_name(config, label):
    with pytest.raises(ParameterError, match=f"^{label}=") as caught:
        watermark_of(config, 64)
    assert caught.value.name == "watermark"


def test_keys_are_not_printed():
    for config in ({"kind": "kgw", "hashing_key": 98765}, {"kind": "gumbel", "hashing_key": 98765},
                   {"kind": "synthid", "keys": [98765], "sampling_table_seed": 98765}):
        assert "98765" not in str(watermark_of(config, 64)) + repr(watermark_of(config, 64))


def test_an_option_of_another_detector_is_refused():
    with pytest.raises(TypeError, match="weighted"):
        detect([1, 2, 3], watermark_of({"kind": "kgw"}, 64), weighted=True)
