import io

import pytest

SKY = "The color of sky is"

pytestmark = pytest.mark.usefixtures("weights")


def test_every_value_has_a_source(unspool):
    out = unspool("explain", "--temp", "0.7", "--top-k", "40").out
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.strip()}
    assert rows["temperature"] == ["0.7", "user"]
    assert rows["top_k"] == ["40", "user"]
    assert rows["max_new_tokens"] == ["128", "default"]
    assert rows["strategy"] and rows["rules"] and rows["stops"]
    assert "typical_p" not in rows and "defaults that change nothing" in out
    found = unspool("explain", "--json").json["parameters"]
    assert {"name": "typical_p", "value": 1.0, "source": "default"} in found


def test_json_is_the_explanation(unspool):
    found = unspool("explain", "--temperature", "0", "--json").json
    assert "greedy" in str(found).lower()


def test_the_stages_stand_in_order(unspool):
    asked = ("--temperature", "0.8", "--top-k", "40", "--repetition-penalty", "1.2")
    lines = unspool("explain", *asked, "--order", "llama.cpp").out.splitlines()
    at = lines.index("order     llama.cpp")
    assert [line[10:] for line in lines[at + 1:at + 6]] == [
        "1. repetition_penalty(1.2, 1, 64)", "2. top_k(40)", "3. top_p(0.95)", "4. min_p(0.05)",
        "5. temperature(0.8)"]  # fmt: skip
    rows = {line.split()[0]: line.split()[1:] for line in lines if line.strip()}
    assert rows["min_p"] == ["0.05", "dialect"] and rows["top_k"] == ["40", "user"]


def test_a_prompt_is_counted_and_none_is_needed(unspool, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"not read")))
    assert "max_new_tokens" in unspool("explain").out
    ran = unspool("explain", "sky " * 30, "--max-new-tokens", "8190", code=2)
    assert "does not fit" in ran.err


AGAINST = ("explain", SKY, "--temperature", "0.9", "--top-k", "40", "--repetition-penalty", "1.2",
           "--seed", "1", "--max-new-tokens", "8", "--against", "sglang")  # fmt: skip


def test_against_shows_the_first_token_that_differs(unspool):
    found = unspool(*AGAINST, "--json").json
    ours = unspool("run", *AGAINST[1:-2], "--json").json["token_ids"]
    theirs = unspool("run", *AGAINST[1:-2], "--order", "sglang", "--json").json["token_ids"]
    differs = found["differs"]
    place = differs["position"]
    assert ours[:place] == theirs[:place] and found["tokens"] == place
    assert differs["ours"]["id"] == ours[place] != theirs[place] == differs["theirs"]["id"]
    assert (differs["side"], differs["stage"]) == ("ours", "repetition_penalty(1.2)")
    told = unspool(*AGAINST).out
    assert f"token {place} differs: " in told
    assert "made by ours (unspool): repetition_penalty(1.2) " in told


def test_any_two_orders_are_compared(unspool):
    found = unspool(*AGAINST, "--order", "sglang", "--json").json
    assert found["ours"] == found["theirs"] and found["differs"] is None
    ran = unspool(*AGAINST[:-1], "vlm", code=2)
    assert "did you mean vllm?" in ran.err and ran.out == ""


def test_against_needs_a_prompt(unspool, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert "no prompt" in unspool("explain", "--against", "hf", code=2).err
    assert "needs a PROMPT" in unspool("explain", "-s", "Be brief.", code=2).err


def test_a_program_is_shown_stage_by_stage(unspool):
    asked = ("--strategy", "beam:5@8 >> sample:t=.8,top_p=.95", "--repetition-penalty", "1.1",
             "--guidance-scale", "1.5")  # fmt: skip
    lines = unspool("explain", *asked).out.splitlines()
    start = lines.index("stage 1   beam:num_beams=5@8")
    assert lines[start + 1].startswith("strategy  Beam(width=5")
    assert lines[start + 2:start + 4] == ["mixes     1. Guidance(1.5)",
                                          "rules     1. repetition_penalty(1.1)"]
    assert lines[start + 4:start + 10] == [
        "stage 2   sample:temperature=0.8,top_p=0.95, takes over 1 of the texts",
        "strategy  Sample(n=1)", "mixes     1. Guidance(1.5)",
        "rules     1. repetition_penalty(1.1)",
        "          2. temperature(0.8)", "          3. top_p(0.95)"]
    found = unspool("explain", *asked, "--json").json
    assert [part["plan"] for part in found["program"]] == [
        "beam:num_beams=5@8", "sample:temperature=0.8,top_p=0.95"]
