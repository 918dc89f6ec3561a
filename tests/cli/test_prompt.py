import io

import click
import pytest

from unspool.cli.prompt import read_prompt, with_system
from unspool.core.errors import PromptError


class Pipe(io.TextIOWrapper):
    def __init__(self, raw: bytes, terminal: bool = False) -> None:
        super().__init__(io.BytesIO(raw))
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.fixture
def piped(monkeypatch):
    return lambda raw, **settings: monkeypatch.setattr("sys.stdin", Pipe(raw, **settings))


def test_a_prompt_comes_from_one_place(tmp_path, piped):
    path = tmp_path / "prompt.txt"
    path.write_bytes("naïve\n".encode())
    piped(b"from a pipe\n")
    assert read_prompt("words", None, None) == "words"
    assert read_prompt(None, "option", None) == "option"
    assert read_prompt(None, None, str(path)) == "naïve"
    assert read_prompt(None, None, None) == "from a pipe"


@pytest.mark.parametrize("place", [("-", None, None), (None, "-", None), (None, None, "-")])
def test_a_dash_is_the_standard_input(place, piped):
    piped(b"from a pipe")
    assert read_prompt(*place) == "from a pipe"


@pytest.mark.parametrize(
    ("raw", "text"), [(b"a\n\n", "a\n"), (b"a\r\n", "a"), (b"", ""), (b"\n", ""), (b" a ", " a ")]
)
def test_only_the_last_line_break_is_dropped(raw, text, piped):
    piped(raw)
    assert read_prompt(None, None, None) == text


@pytest.mark.parametrize("words", ["", "-x is a letter", "a\n"])
def test_an_argument_is_taken_as_it_is(words):
    assert read_prompt(words, None, None) == words


def test_two_prompts_are_refused_by_name():
    with pytest.raises(click.UsageError, match="PROMPT and -f"):
        read_prompt("a", None, "b")
    with pytest.raises(click.UsageError, match="-p and -f"):
        read_prompt(None, "a", "-")


def test_a_terminal_is_not_waited_for(piped):
    piped(b"", terminal=True)
    with pytest.raises(click.UsageError, match="no prompt"):
        read_prompt(None, None, None)


def test_what_is_no_text_is_refused(tmp_path, piped):
    piped(b"abc\xff")
    with pytest.raises(PromptError, match="standard input: byte 3 is not UTF-8"):
        read_prompt("-", None, None)
    with pytest.raises(PromptError, match=r"missing\.txt: cannot be read"):
        read_prompt(None, None, str(tmp_path / "missing.txt"))
    with pytest.raises(PromptError, match="cannot be read"):
        read_prompt(None, None, str(tmp_path))


def test_a_system_message_makes_a_chat():
    assert with_system("hi", None) == "hi"
    assert with_system("hi", "") == [
        {"role": "system", "content": ""},
        {"role": "user", "content": "hi"},
    ]
