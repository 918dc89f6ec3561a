"""From samples to medians, ratios, shares and verdicts, and how they are shown."""

import io
import json
from dataclasses import replace

import pytest

from unspool.bench.plot import chart, lines, page
from unspool.bench.race import Race
from unspool.bench.report import RATE, SECONDS, Run, equal, faster, report
from unspool.bench.roofline import Kind, Weights
from unspool.bench.table import print_report

MACHINE = {"cpu": "a cpu", "cores": 2, "memory": 2**34, "load": 0.1}
SETTINGS = {"model": "smollm2", "rounds": 3, "axis": "tokens before"}


def made(**changes) -> Run:
    found = Race(
        samples={
            "default": {"decode": [100.0, 220.0, 200.0], "at 128": [180.0, 190.0, 185.0]},
            "fast": {"decode": [250.0], "at 128": [240.0]},
            "llama_cpp": {"decode": [100.0, 90.0, 80.0], "at 128": [74.0]},
            "vllm": {"decode": [5.0], "at 128": [5.0]},
        },
        read={"numpy": [20.0], "torch": [26.0, 28.0, 27.0]},
        facts={"llama_cpp": {"version": "1", "threads": 2, "notes": ["it hums"]}},
    )
    run = Run("decode", RATE, "decode", {"decode": 96, "at 128": 128}, ("default", "fast"), found,
              {"transformers": "not here"}, ["it rained"], MACHINE, SETTINGS,
              Weights({"Q4_1": Kind(3, 100_000_000, 160_000_000)}), True,
              {"by": "the reference", "what": "greedy tokens", "tokens": 8,
               "equal": {"default": 8, "llama_cpp": 3}})
    return replace(run, **changes)


def test_ratios_are_of_medians_and_above_one_where_ours_is_faster():
    found = report(made())
    assert found["ours"]["tokens_per_s"] == 200.0
    assert found["ratios"] == {"llama_cpp": pytest.approx(200 / 90), "vllm": 40.0}
    assert found["ratios_at"]["at 128"] == {"llama_cpp": 2.5, "vllm": 37.0}
    assert found["variants"]["fast"]["ratios"]["llama_cpp"] == pytest.approx(250 / 90)
    assert faster(SECONDS, 0.5, 2.0) == 4.0


def test_raw_samples_are_kept_in_their_order():
    point = report(made())["ours"]["points"]["decode"]
    assert point == {"x": 96, "median": 200.0, "samples": [100.0, 220.0, 200.0]}


def test_the_share_is_of_the_best_reader():
    found = report(made())
    assert found["roofline"]["bandwidth_gb_s"] == 27.0
    assert found["ours"]["roofline_share"] == pytest.approx(20 / 27)
    assert found["roofline"]["bytes_per_token"] == 100_000_000
    assert found["roofline"]["failed"] is None


def test_a_share_beyond_reason_is_a_failed_probe_and_no_result():
    run = made()
    run.found.read = {"numpy": [19.0]}
    found = report(run)
    assert found["ours"]["roofline_share"] is None
    assert found["variants"]["fast"]["roofline_share"] is None
    assert "fast would read 132% of the bandwidth" in found["roofline"]["failed"]
    run.found.read = {"numpy": [24.0]}  # default reaches 83 %, fast 104 %
    found = report(run)
    assert found["variants"]["fast"]["roofline_share"] == pytest.approx(25 / 24)
    assert found["roofline"]["failed"] is None


def test_the_reference_is_held_to_the_bytes_that_it_reads():
    run = made(ours=("reference",))
    run.found.samples = {"reference": {"decode": [20.0]}}
    found = report(run)
    assert found["roofline"]["bytes_per_token"] == 640_000_000
    assert found["ours"]["roofline_share"] == pytest.approx(0.64 * 20 / 27)


def test_a_slow_peer_is_named_on_the_model_it_is_quoted_of_only():
    found = report(made())
    assert found["peers"]["llama_cpp"]["misconfigured"] is None
    assert "5.0 tok/s" in found["peers"]["vllm"]["misconfigured"]
    assert any(note.startswith("vllm looks misconfigured") for note in found["notes"])
    assert report(made(quoted=False))["peers"]["vllm"]["misconfigured"] is None


def test_without_ours_there_is_nothing_to_compare():
    run = made()
    del run.found.samples["default"]
    found = report(run)
    assert found["ours"] is None and found["ratios"] == {}
    assert found["peers"]["llama_cpp"]["tokens_per_s"] == 90.0
    print_report(found, out := io.StringIO())
    assert "llama_cpp" in out.getvalue()


def test_loading_is_compared_in_seconds():
    found = report(made(verb="load", unit=SECONDS, weights=None, quoted=False, text={}))
    assert found["ours"]["seconds"] == 200.0 and "tokens_per_s" not in found["ours"]
    assert found["ratios"]["llama_cpp"] == pytest.approx(90 / 200)
    assert found["roofline"] == {} and found["ours"]["roofline_share"] is None


@pytest.mark.parametrize(("ids", "reference", "same"), [
    ([1, 2, 3], [1, 2, 3], 3), ([1, 2, 9], [1, 2, 3], 2), ([9], [1], 0), ([1], [1, 2], 1),
])
def test_texts_are_equal_until_they_part(ids, reference, same):
    assert equal(ids, reference) == same


def test_the_report_is_strict_json_with_the_fields_that_others_rely_on():
    found = json.loads(json.dumps(report(made()), allow_nan=False))
    assert {"machine", "roofline", "ours", "peers", "ratios", "missing"} <= found.keys()
    assert found["missing"] == {"transformers": "not here"}


def test_the_table_says_all_of_it():
    print_report(report(made()), out := io.StringIO())
    text = out.getvalue()
    for part in ("2.22x", "(40.00x)", "unspool fast", "at 128", "27.0 GB/s", "100.0 MB",
                 "3 Q4_1", "unspool reaches 74% of it", "missing: transformers: not here",
                 "note: it rained", "note: llama_cpp: it hums", "of 8: default 8, llama_cpp 3",
                 "a cpu, 2 cores, 16 GiB"):
        assert part in text, part


def test_the_chart_has_a_line_for_each_engine():
    found = report(made())
    assert list(lines(found)) == ["unspool", "unspool fast", "llama_cpp", "vllm"]
    first = chart(found).data[0]
    assert (first.name, list(first.x), list(first.y)) == ("unspool", [96, 128], [200.0, 185.0])
    assert list(first.error_y.arrayminus) == [100.0, 5.0]
    assert "<html>" in page(found)[:200]
