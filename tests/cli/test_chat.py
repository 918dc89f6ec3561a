import io
import json

import pytest

pytestmark = pytest.mark.usefixtures("weights")


@pytest.fixture
def says(monkeypatch):
    def say(*lines: str) -> None:
        raw = "".join(line + "\n" for line in lines).encode()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw)))

    return say


def test_each_line_is_a_turn_that_remembers_the_ones_before(unspool, says):
    says("Hello!", "", "And now?")
    ran = unspool("chat", "-s", "Be brief.", "--max-new-tokens", "6", "--json")
    first, second = map(json.loads, ran.out.splitlines())
    assert [message["role"] for message in first["prompt"]] == ["system", "user"]
    assert second["prompt"] == [
        *first["prompt"],
        {"role": "assistant", "content": first["text"]},
        {"role": "user", "content": "And now?"},
    ]
    says("Hello!", "And now?")
    plain = unspool("chat", "-s", "Be brief.", "--max-new-tokens", "6")
    assert plain.out == first["text"] + "\n" + second["text"] + "\n"


def test_clear_forgets_and_exit_ends(unspool, says):
    says("Hello!", "/clear", "Hello!", "/exit", "never read")
    ran = unspool("chat", "--max-new-tokens", "4", "--json")
    first, second = map(json.loads, ran.out.splitlines())
    assert (first["prompt"], first["text"]) == (second["prompt"], second["text"])


def test_no_input_is_no_conversation(unspool, says):
    says()
    assert unspool("chat").out == ""


def test_several_answers_are_refused(unspool, says):
    says("Hello!")
    assert "--n" in unspool("chat", "-n", "2", code=2).err
