import json

import pytest

from unspool.bench import session as room

REPORT = {
    "measure": "batch", "unit": "tokens/s", "main": "16", "machine": {"cpu": "c", "cores": 2,
    "memory": None, "load": None}, "settings": {"model": "smollm2", "rounds": 5}, "roofline": {},
    "ours": {"points": {"16": {"x": 16, "median": 9.0, "samples": [9.0]}}}, "variants": {},
    "peers": {}, "ratios": {}, "missing": {}, "text": {}, "notes": [],
}  # fmt: skip


@pytest.fixture
def asked(monkeypatch):
    """What the command line makes of its words; nothing is measured."""
    seen = {"report": REPORT}

    class Session:
        def __init__(self, plan, say):
            seen.update(plan=plan, say=say)

        def speed(self, measure):
            seen["measure"] = measure
            return seen["report"]

        def load(self):
            return seen["report"]

        def cache(self, lengths, kinds):
            seen.update(lengths=lengths, kinds=kinds)
            return seen["report"]

    monkeypatch.setattr(room, "Session", Session)
    return seen


def test_what_is_said_reaches_the_plan(unspool, asked, tmp_path):
    unspool("bench", "decode", "m.gguf", "--tokens", "9", "--lengths", "4,8", "--rounds",
            "2", "--peers", "vllm,llama_cpp", "--numerics", "reference", "--kv", "bf16",
            "--sampled", "--threads", "3")  # fmt: skip
    plan = asked["plan"]
    assert (plan.model, plan.rounds, plan.peers) == ("m.gguf", 2, ("vllm", "llama_cpp"))
    assert (plan.numerics, plan.kv, plan.sampled) == (("reference",), "bf16", True)
    assert plan.threads == 3
    assert [point.x for point in asked["measure"].points[1:]] == [4, 8]
    assert asked["measure"].first.new == 9


def test_defaults_are_both_of_ours_and_all_peers(unspool, asked):
    unspool("bench", "prefill")
    plan = asked["plan"]
    assert (plan.model, plan.numerics, plan.rounds) == (None, ("default", "fast"), 5)
    assert plan.peers == ("transformers", "llama_cpp", "openvino_genai", "vllm")
    assert asked["measure"].first.prompt == 512
    unspool("bench", "cache", "--kv", "f32,int8", "--lengths", "16")
    assert (asked["lengths"], asked["kinds"]) == ((16,), ("f32", "int8"))
    assert asked["plan"].numerics == ("default",) and asked["plan"].rounds == 3
    unspool("bench", "load", "--peers", "none")
    assert asked["plan"].peers == ()


def test_a_chart_of_decode_brings_its_lengths(unspool, asked, tmp_path):
    path = tmp_path / "speed.html"
    ran = unspool("bench", "decode", "--plot", str(path))
    assert [point.x for point in asked["measure"].points[1:]] == [128, 512, 2048]
    assert f"wrote {path}" in ran.err and "Plotly" in path.read_text(encoding="utf-8")
    assert "unspool" in ran.out and "9" in ran.out


def test_json_is_the_report(unspool, asked):
    assert json.loads(unspool("bench", "batch", "--json", "-q").out) == REPORT
    assert [point.rows for point in asked["measure"].points] == [1, 2, 4, 8, 16, 32]


@pytest.mark.parametrize(
    "words",
    [
        ("decode", "--peers", "llamacpp"), ("decode", "--lengths", "8,0"),
        ("decode", "--lengths", "8,x"), ("batch", "--sizes", ""), ("load", "--rounds", "0"),
        ("decode", "--tokens", "1"), ("cache", "--kv", "f16"), ("nothing",),
        ("decode", "--numerics", "none"), ("prefill", "--peers-python", "/no/such/python"),
    ],
)  # fmt: skip
def test_wrong_usage_is_said_before_anything_is_measured(unspool, asked, words):
    assert unspool("bench", *words, code=2).err
    assert "plan" not in asked


def test_a_chart_that_cannot_be_written_is_said_first(unspool, asked, tmp_path):
    ran = unspool("bench", "batch", "--plot", str(tmp_path / "no" / "x.html"), code=1)
    assert "its folder is not there" in ran.err and "plan" not in asked


def test_without_our_own_engine_the_run_has_failed(unspool, asked):
    asked["report"] = REPORT | {"ours": None, "missing": {"default": "it broke"}}
    ran = unspool("bench", "batch", "--json", code=1)
    assert ran.json["missing"] == {"default": "it broke"}
    assert "it broke" in ran.err


def test_a_model_that_is_not_there(unspool):
    assert "no-such-model" in unspool("bench", "decode", "no-such-model", code=4).err
