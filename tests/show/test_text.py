import io

import pytest

from unspool.show.text import TINTS, TintedText, print_legend, tint_of

PIECES = [(" sky", 0.9), (" is\n", 0.05), (" blue", None)]


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch):
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)


def written(pieces=PIECES) -> str:
    file = io.StringIO()
    text = TintedText(file)
    for piece, prob in pieces:
        text.write(piece, prob)
    return file.getvalue()


@pytest.mark.parametrize(
    ("prob", "rank"), [(1.0, 0), (0.7, 0), (0.69, 1), (0.3, 1), (0.1, 2), (0.01, 3), (0.0, 4)]
)
def test_a_probability_has_one_tint_and_likely_tokens_none(prob, rank):
    assert tint_of(prob) == TINTS[rank][1]
    assert TINTS[0][1] == ""


def test_off_a_terminal_the_text_is_untouched():
    assert written() == " sky is\n blue"
    assert written([("\x1b[0m", 0.01)]) == "\x1b[0m"  # a program gets what the model wrote


def test_on_a_terminal_unlikely_tokens_are_tinted_and_escapes_shown(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    out = written()
    assert out.startswith(" sky\x1b[") and out.endswith(" blue")
    assert written([("\x1b[0m", 0.9)]) == "⟨U+001B⟩[0m"


def test_no_color_is_obeyed_on_a_terminal(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    assert written() == " sky is\n blue"


def test_the_legend_names_every_tint_where_there_are_tints(monkeypatch):
    file = io.StringIO()
    print_legend(file)
    assert file.getvalue() == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    print_legend(file)
    legend = file.getvalue()
    labels = ("70% to 100%", "30% to 70%", "10% to 30%", "1% to 10%", "below 1%")
    assert all(label in legend for label in labels)


def test_the_tints_get_darker_as_tokens_get_rarer():
    grounds = [style.split("#")[1] for _, style in TINTS[1:]]
    colours = [bytes.fromhex(ground) for ground in grounds]
    light = [0.2 * red + 0.7 * green + 0.1 * blue for red, green, blue in colours]
    assert light == sorted(light, reverse=True)
