"""Searches whose memory cannot fit are refused before anything is read, with both numbers."""
import re
from dataclasses import replace

import models_zoo as zoo
import pytest

from unspool.core.errors import ParameterError
from unspool.llm import memory
from unspool.llm.load import load
from unspool.llm.memory import free_bytes, needed

GIB = 2**30


@pytest.fixture
def lm(make, kit, monkeypatch):
    """A model that takes a MiB for each token, on a machine with 1 GiB free."""
    made = make(zoo.tiny(vocab_size=64, max_position_embeddings=256), kit.letters(64))
    made.facts = replace(made.facts, token_bytes=2**20)
    monkeypatch.setattr(memory, "free_bytes", lambda: GIB)
    return made


def test_bytes_are_counted_in_blocks_and_the_prompt_once(lm):
    block = 16 * 2**20
    assert needed(lm.facts, 1, 3, 16) == (1 + 1 * 2) * block
    assert needed(lm.facts, 10, 17, 17) == (2 + 10 * 3) * block
    full = replace(lm.facts, reserve=256)
    assert needed(full, 4, 16, 5) == (1 + 4 * 16) * block
    assert needed(replace(lm.facts, token_bytes=0), 99, 99, 99) == 0


@pytest.mark.parametrize(("given", "name"), [
    ({"num_beams": 64}, "num_beams"), ({"strategy": "beam:64"}, "num_beams"),
    ({"num_beams": "2..64/9"}, "num_beams"), ({"strategy": "mbr:64"}, "best_of"),
    ({"n": 64, "do_sample": True}, "n"), ({"strategy": "stochastic_beam:64"}, "num_beams"),
    ({"strategy": "sample@4 >> beam:64"}, "num_beams"), ({"strategy": "tree", "num_beams": 64},
                                                         "num_beams"),
])
def test_a_width_that_cannot_fit_is_refused_with_both_numbers(lm, given, name):
    with pytest.raises(ParameterError) as error:
        lm.generate([1, 2, 3], max_new_tokens=16, **given)
    found = re.search(r"=(\d+) does not fit: .* take ([\d,]+) bytes and ([\d,]+) are free",
                      str(error.value))
    assert found[1] == "64" and error.value.name == name
    assert [int(n.replace(",", "")) for n in found.groups()[1:]] == [
        (1 + 64 * 2) * 16 * 2**20, GIB]
    assert lm.worker.thread is None  # nothing was read


def test_what_fits_or_is_not_remembered_passes(lm):
    for given in ({"num_beams": 16}, {"num_beams": 64, "use_cache": False}, {"n": 1}):
        assert lm.generate([1, 2, 3], max_new_tokens=16, **given).tokens


def test_each_reader_needs_its_own(lm):
    lm.explain([1, 2, 3], max_new_tokens=16, num_beams=31)
    with pytest.raises(ParameterError, match="num_beams=31 does not fit"):
        lm.explain([1, 2, 3], max_new_tokens=16, num_beams=31, guidance_scale=2.0)


def test_a_loaded_model_knows_what_a_token_takes(folder):
    place = folder()
    with load(place) as dense, load(place, memory="full") as full, load(place, memory="none") as no:
        config, store = dense.model.config, dense.model.layout
        assert dense.facts.token_bytes * 16 == store.page
        assert dense.facts.token_bytes >= 2 * config.layers * config.kv_heads * config.size * 4
        assert full.facts.token_bytes == dense.facts.token_bytes and full.facts.reserve > 0
        assert (dense.facts.reserve, no.facts.token_bytes) == (0, 0)
    with load(place, numerics="reference") as plain:
        assert plain.facts.token_bytes == 0  # not known


def test_what_the_machine_has(monkeypatch, tmp_path):
    assert free_bytes() > 2**20
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "missing")
    assert free_bytes() == 0
