import pytest

from unspool.core.errors import ParameterError
from unspool.scorers import match
from unspool.scorers.match import last_matches


def test_a_pattern_without_end_is_ended_and_the_next_is_looked_for():
    with pytest.raises(ParameterError, match=r"takes more than 1 s .* 2 texts of at most 61") as no:
        last_matches("(a+)+$", 0, ("a" * 60 + "b", "a"))
    assert no.value.name == "answer"
    assert last_matches("(a+)+$", 0, ("aa",)) == ((0, 2),)


def test_places_are_those_of_characters():
    assert last_matches("é(.)", 1, ("🦊éx", "é", "éaéb\n")) == ((2, 3), None, (3, 4))
    assert last_matches("x", 0, ()) == ()


def test_a_machine_too_busy_to_answer(monkeypatch):
    """The time on the wall ends it where the process's own clock does not."""
    monkeypatch.setattr(match, "_WAIT_SECONDS", 0.2)
    with pytest.raises(ParameterError, match=r"takes more than 0\.2 s"):
        last_matches("(b+)+$", 0, ("b" * 60 + "a",))


def test_a_process_that_cannot_be_started_or_dies(monkeypatch, tmp_path):
    monkeypatch.setattr(match, "_WORKER", tmp_path / "none.py")
    with pytest.raises(ParameterError, match="exit code 2"):
        last_matches("c", 0, ("c",))
    monkeypatch.setattr(match.sys, "executable", str(tmp_path / "none"))
    with pytest.raises(ParameterError, match="cannot start the process"):
        last_matches("c", 0, ("cc",))
