import io
import time

import pytest

from unspool.show import progress
from unspool.show.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    monkeypatch.setattr(progress, "TICK", 0.01)


def shown_within(file: io.StringIO, what: str, **settings) -> str:
    with Progress(what, file, **settings):
        until = time.monotonic() + 10
        while not file.getvalue() and time.monotonic() < until and not settings:
            time.sleep(0.005)
    return file.getvalue()


def test_elsewhere_it_is_said_once():
    assert shown_within(io.StringIO(), "loading") == "loading ...\n"


def test_on_a_terminal_the_line_goes_away():
    out = shown_within(Terminal(), "loading")
    assert out.startswith("\r\x1b[Kloading ... ") and out.endswith("\r\x1b[K")


def test_quiet_says_nothing():
    assert shown_within(io.StringIO(), "loading", quiet=True) == ""


def test_what_is_quickly_done_says_nothing(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 60.0)
    file = io.StringIO()
    with Progress("loading", file):
        pass
    assert file.getvalue() == ""


def test_an_error_passes_through():
    with pytest.raises(ZeroDivisionError), Progress("dividing", io.StringIO()):
        1 / 0  # noqa: B018
