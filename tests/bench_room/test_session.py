"""Whole runs of our own engine on a tiny model, and of the peers where they are installed."""

import json
import sys
from pathlib import Path

import pytest

from unspool.bench import beams, engines, shaping
from unspool.bench.peers import PEERS
from unspool.bench.points import batch, decode, prefill
from unspool.bench.race import Race
from unspool.bench.session import Plan, Session
from unspool.bench.worker import WorkerError
from unspool.core.errors import ModelError


@pytest.fixture
def session(tiny, lines):
    def make(**asked) -> Session:
        plan = {"numerics": ("reference",), "threads": 1, "rounds": 2} | asked
        return Session(Plan(str(tiny), **plan), lines.say)

    return make


def test_decode_of_our_own(session):
    found = session().speed(decode(6, (8,)))
    assert list(found["ours"]["points"]) == ["decode", "at 8"]
    assert all(len(point["samples"]) == 2 for point in found["ours"]["points"].values())
    assert found["ours"]["tokens_per_s"] > 0
    # A share is there unless the probe failed, as it may while other programs hold the cores.
    assert (found["ours"]["roofline_share"] is None) == (found["roofline"]["failed"] is not None)
    assert found["ours"]["version"] and "reference" in found["ours"]["dtype"]
    assert found["roofline"]["bandwidth_gb_s"] > 0 and "numpy" in found["roofline"]["readers"]
    assert found["missing"] == {} and found["peers"] == {} and found["ratios"] == {}
    assert found["text"]["tokens"] == 6 and found["text"]["ours"] == found["text"]["reference"]
    json.dumps(found, allow_nan=False)


def test_both_of_ours_write_the_reference_s_text(session):
    found = session(numerics=("default", "fast"), rounds=1).speed(decode(8))
    assert found["missing"] == {}
    assert found["variants"].keys() == {"fast"}
    assert found["text"]["by"] == "unspool, numerics reference"
    assert found["text"]["equal"]["default"] == 8


def test_numerics_that_are_not_there_are_missing_with_the_reason(session):
    found = session(numerics=("reference", "exact"), rounds=1).speed(prefill(16))
    assert "exact" in found["missing"]["exact"] and found["ours"]["tokens_per_s"] > 0


def test_batch_and_sampling(session):
    found = session(sampled=True).speed(batch(4, (1, 3)))
    assert found["main"] == "3" and list(found["ours"]["points"]) == ["1", "3"]
    assert found["settings"]["sampled"] and found["text"] == {}
    assert found["ours"]["roofline_share"] is None  # of batch 1 only


def test_load_of_our_own(session):
    points = session(rounds=1).load()["ours"]["points"]
    assert list(points) == ["load alone", "loaded", "first token", "first use"]
    middles = {label: point["median"] for label, point in points.items()}
    assert 0 < middles["load alone"] <= middles["loaded"] <= middles["first token"]
    assert middles["first use"] > 0


def test_caches_of_our_own(session):
    found = session(numerics=("default",), rounds=1).cache((8, 32), ("f32",))
    methods = found["ours"]["methods"]
    assert list(methods) == ["none", "dense", "full"] and found["missing"] == {}
    for row in methods.values():
        assert list(row["points"]) == ["8", "32"] and row["used"]
        assert all(point["median"] > 0 for point in row["points"].values())
        if Path("/proc/self/clear_refs").exists():
            assert list(row["memory_bytes"]) == ["8", "32"]
    json.dumps(found, allow_nan=False)


def test_peers_that_are_not_installed_are_missing_with_the_command(session, monkeypatch):
    monkeypatch.setattr(engines, "pythons", lambda home: iter(()))
    found = session(peers=tuple(PEERS), rounds=1).speed(prefill(16))
    assert found["missing"].keys() == PEERS.keys()
    assert all("make peers" in why for why in found["missing"].values())


def test_a_model_that_is_not_there_is_an_error_of_its_own(lines):
    with pytest.raises(ModelError, match="no-such-model"):
        Session(Plan("no-such-model"), lines.say)


@pytest.mark.slow
@pytest.mark.timeout(1200)  # one of them compiles for minutes
@pytest.mark.parametrize("name", PEERS)
def test_a_peer_runs_beside_ours(name, lines):
    try:
        engines.interpreter(PEERS[name].home)
    except WorkerError as error:
        pytest.skip(str(error))
    try:
        plan = Plan(None, ("reference",), peers=(name,), rounds=1)
        found = Session(plan, lines.say).speed(decode(8))
    except ModelError as error:
        pytest.skip(f"the default weights are missing: {error}")
    assert found["missing"] == {} and found["ratios"].keys() == {name}
    peer = found["peers"][name]
    assert all(peer[fact] for fact in ("version", "threads", "dtype", "cache", "build"))
    assert found["text"]["equal"][name] >= 3


def test_shape_of_our_own(session):
    found = session(rounds=2).shape()
    assert found["missing"] == {} and found["ours"]["ms"] > 0
    assert {len(point["samples"]) for point in found["ours"]["points"].values()} == {2}
    assert list(found["ours"]["points"]) == [shaping.ONE, shaping.MIXED]
    json.dumps(found, allow_nan=False)


def test_the_mixed_recipes_are_all_different():
    recipes = [tuple(sorted(numbers.items())) for numbers in shaping.mixed()]
    assert len(set(recipes)) == shaping.ROWS and () in recipes


def test_shaping_beside_the_processors(session):
    pytest.importorskip("transformers", reason="transformers is not installed")
    found = session(rounds=1, peers=("transformers",)).shape()
    assert found["missing"] == {} and found["ratios"].keys() == {"transformers"}


def test_beams_of_our_own(session):
    found = session(numerics=("default", "reference")).beam(3, 6)
    assert found["missing"] == {} and found["text"] == {}
    assert list(found["ours"]["points"]) == ["3 beams", "3 samples"] == list(beams.ways(3))
    assert all(len(point["samples"]) == 2 for point in found["ours"]["points"].values())
    assert found["ours"]["seconds"] == found["ours"]["points"]["3 beams"]["median"] > 0
    assert found["times_samples"].keys() == {"default", "reference"}
    json.dumps(found, allow_nan=False)


def test_beams_beside_transformers(session):
    pytest.importorskip("transformers", reason="transformers is not installed")
    found = session(peers=("transformers",), python=sys.executable).beam(3, 6)
    assert found["missing"] == {} and found["ratios"]["transformers"] > 0
    assert found["text"]["equal"] == {"reference": 6}  # the same float32 weights


def test_a_search_that_wrote_less_is_an_error():
    with pytest.raises(ModelError, match=r"2 texts of 4 tokens, it wrote \[4, 3\]"):
        beams.expect("other", [[1] * 4, [1] * 3], 2, 4)


def test_what_beams_cost_is_the_median_of_the_rounds():
    found = Race(samples={"ours": {"2 beams": [2.0, 9.0, 3.0], "2 samples": [1.0, 3.0, 2.0]}})
    assert beams.costs(found) == {"ours": 2.0}
