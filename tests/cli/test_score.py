import math

import pytest

TEXT = "The sky is blue."

pytestmark = pytest.mark.usefixtures("weights")


def test_json_has_the_fields_that_others_rely_on(unspool):
    score = unspool("score", TEXT, "--json").json
    assert list(score) == ["tokens", "logprob", "perplexity", "bits_per_byte"]
    assert all(list(token) == ["id", "text", "logprob", "rank"] for token in score["tokens"])
    assert "".join(token["text"] for token in score["tokens"]) == TEXT
    known = [token["logprob"] for token in score["tokens"] if token["logprob"] is not None]
    assert score["logprob"] == pytest.approx(sum(known))
    assert score["perplexity"] == pytest.approx(math.exp(-sum(known) / len(known)))


def test_a_file_its_name_and_a_prompt_are_told_apart(unspool, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "essay.txt").write_text(TEXT + "\n")
    score = unspool("score", TEXT, "--json").json
    named = unspool("score", "essay.txt", "--json")
    assert named.json == score and "scoring the text of the file" in named.err
    assert unspool("score", "-f", "essay.txt", "--json").json == score
    assert unspool("score", "-p", "essay.txt", "--json").json != score


def test_a_given_text_is_not_scored(unspool):
    score = unspool("score", " blue.", "--given", "The sky is", "--json").json
    assert [token["text"] for token in score["tokens"]] == [" blue", "."]
    assert all(token["logprob"] is not None for token in score["tokens"])


def test_plain_output_has_the_numbers_and_the_text(unspool):
    ran = unspool("score", TEXT, "--show", "prob")
    assert ran.out.startswith(TEXT + "\n") and "perplexity" in ran.out


def test_a_mark_is_looked_for(unspool):
    mark = '{"kind": "kgw", "bias": 5}'
    text = unspool("run", TEXT, "--max-new-tokens", "40", "--temperature", "1", "--seed", "3",
                   "--watermark", mark, "-q").out
    found = unspool("score", "-p", text, "--watermark", mark, "--json").json["watermark"]
    assert found["marked"] and found["counted"] > 20
    assert "not found" in unspool("score", "-p", TEXT, "--watermark", mark).out
    assert "kgb" in unspool("score", "-p", TEXT, "--watermark", '{"kind": "kgb"}', code=2).err
