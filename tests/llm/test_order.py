import dataclasses

import pytest

from unspool.core.errors import ParameterError
from unspool.core.params import fields
from unspool.core.shaping import Shaping
from unspool.llm.order import as_given, dialect_of
from unspool.llm.stages import MAKERS
from unspool.rules import KINDS
from unspool.rules.dialects import DIALECTS, GROUPS, STAGES, UNSPOOL, spellings


@pytest.mark.parametrize(("value", "name"), [
    (None, "unspool"), ("unspool", "unspool"), ("hf", "hf"), ("HF", "hf"), (" vllm ", "vllm"),
    ("transformers", "hf"), ("vllm-v1", "vllm"), ("vllm-v2", "vllm-v2"), ("sglang", "sglang"),
    ("llama.cpp", "llama.cpp"), ("llama-cpp", "llama.cpp"), ("mlx", "mlx"), ("mlx-lm", "mlx"),
])
def test_dialects_by_name(value, name):
    assert dialect_of(value) is DIALECTS[name]
    assert dialect_of(as_given(dialect_of(value))) is DIALECTS[name]


@pytest.mark.parametrize(("value", "order"), [
    (["top_k", "temperature"], ("top_k", "temperature")),
    (("top-k", "Temp"), ("top_k", "temperature")),
    ("top_k;typ_p;top_p;temperature", ("top_k", "typical_p", "top_p", "temperature")),
    ("top_k, temp", ("top_k", "temperature")), ("top_k", ("top_k",)),
    (["penalties", "dry"], (*GROUPS["penalties"], "dry")),
    (["temp", "top_p", "temp"], ("temperature", "top_p", "temperature")),
    (["dynatemp", "xtc_probability", "tfs", "adaptive_target", "no_repeat_ngram_size"],
     ("temperature", "xtc", "tfs_z", "adaptive_p", "no_repeat_ngram")),
])
def test_one_s_own_order(value, order):
    found = dialect_of(value)
    assert found.order == order and as_given(found) == order
    assert (found.defaults, found.counted, found.ties) == (
        UNSPOOL.defaults, UNSPOOL.counted, UNSPOOL.ties)
    assert dialect_of(list(order)).order == order


@pytest.mark.parametrize(("value", "said"), [
    ("vlm", "did you mean vllm?"), ("topk", "did you mean top_k?"), (["tempature"], "temperature?"),
    ("qqqq", "lists the stages"), (5, "must be a dialect"), ({"a": 1}, "must be a dialect"),
    ([], "0 stages"), ("", "0 stages"), ([3], "order=3: not a known"), ([["top_k"]], "not a known"),
    (["top_k"] * 257, "257 stages"),
])
def test_what_is_no_order(value, said):
    with pytest.raises(ParameterError) as error:
        dialect_of(value)
    assert said in str(error.value) and error.value.name == "order"


def test_the_tables_fit_together():
    """Every rule belongs to a stage, every stage to parameters, and every order to stages."""
    assert set(MAKERS) == set(STAGES)
    assert {rule for stage in STAGES.values() for rule in stage.rules} == {
        name for name, kind in KINDS.items() if kind.define.__module__.startswith("unspool.")}
    for name, stage in STAGES.items():
        assert all(fields()[p].built for p in (*stage.switches, *stage.beside)), name
    for dialect in DIALECTS.values():
        for order in (dialect.order, *dialect.instead.values()):
            assert set(order) <= set(STAGES) and len(set(order)) == len(order)
        assert set(dialect.defaults) | set(dialect.unlike) <= set(fields())
        assert set(GROUPS["penalties"]) <= set(dialect.counted)
    assert set(UNSPOOL.order) == set(STAGES) - {"infill"}
    assert set(spellings()) >= {"typ_p", "temp", "dynatemp", "penalties", "dry", "top_n_sigma"}


def test_every_parameter_of_the_distribution_is_read_by_a_stage():
    read = {p for stage in STAGES.values() for p in (*stage.switches, *stage.beside)}
    built = {f.name for f in dataclasses.fields(Shaping) if fields()[f.name].built}
    elsewhere = {"order", "remove_invalid_values", "renormalize_logits"}
    assert read - {"min_length", "min_new_tokens"} == built - elsewhere


def test_a_dialect_in_a_list_of_stages_is_told():
    for value in (["hf"], "top_k, vllm"):
        with pytest.raises(ParameterError, match="is a dialect, and a list has stages"):
            dialect_of(value)
