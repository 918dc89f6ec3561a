import io
import re
from dataclasses import dataclass

import pytest

from unspool.show.bars import bar_of, bar_page, plotly_bars, terminal_bars


@dataclass(frozen=True)
class Token:
    id: int
    text: str
    prob: float


LABELS, PROBS = [" a", ' "', "<b>\n"], [0.1134, 0.0147, 0.0001]
ROWS = [Token(*row) for row in zip([253, 16, 9], LABELS, PROBS, strict=True)]


def printed(rows, encoding="utf-8", **settings) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, write_through=True)
    terminal_bars(rows, file, **settings)
    return raw.getvalue().decode(encoding)


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch):
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


def test_a_line_has_bar_percent_id_and_text_in_columns():
    lines = printed(ROWS).splitlines()
    assert lines[0] == "█" * 30 + "  11.34%  253  ·a"
    assert lines[1] == "███▉".ljust(30) + '   1.47%   16  ·"'
    assert lines[2] == " " * 30 + "   0.01%    9  <b>↵"


@pytest.mark.parametrize(
    ("share", "bar"),
    [(0, "    "), (1, "████"), (0.5, "██  "), (0.53125, "██▏ "), (2.0, "████"), (-1, "    ")],
)
def test_a_bar_is_its_share_of_the_width_to_an_eighth_of_a_cell(share, bar):
    assert bar_of(share, 4) == bar


def test_plain_characters_where_the_encoding_has_no_blocks():
    lines = printed(ROWS, encoding="ascii", title="naïve").splitlines()
    assert lines[0] == "na\\xefve"
    assert lines[1].startswith("#" * 30 + "  11.34%  253  \\xb7a")


def test_a_token_never_drives_the_terminal_nor_reads_as_markup():
    out = printed([Token(1, "\x1b[31m[red]:smile:", 0.5)])
    assert "\x1b" not in out and "[31m[red]:smile:" in out


def test_no_rows_and_rows_of_zero_print():
    assert printed([]) == ""
    assert "0.00%" in printed([Token(1, "a", 0.0)])


@pytest.mark.parametrize(("name", "coloured"), [("FORCE_COLOR", True), ("NO_COLOR", False)])
def test_colour_is_for_terminals_and_by_wish(name, coloured, monkeypatch):
    monkeypatch.setenv(name, "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert ("\x1b[" in printed(ROWS)) is coloured


def test_the_figure_has_the_prompt_as_title_and_the_likeliest_on_top():
    figure = plotly_bars(LABELS, PROBS, "The color of sky is")
    assert figure.layout.title.text == "The color of sky is"
    assert list(figure.data[0].x) == PROBS
    assert list(figure.layout.yaxis.ticktext) == ["·a", '·"', "&lt;b&gt;↵"]
    assert figure.layout.yaxis.autorange == "reversed"


def test_tokens_that_look_alike_keep_a_bar_each():
    figure = plotly_bars(["a", "a"], [0.5, 0.25], "x")
    assert list(figure.data[0].y) == [0, 1]


def test_a_long_prompt_is_titled_by_its_end():
    title = plotly_bars(LABELS, PROBS, "start " + "word " * 500 + "end").layout.title.text
    assert title.startswith("…") and title.endswith("end") and len(title) < 300
    assert plotly_bars(LABELS, PROBS, "").layout.title.text == "(empty prompt)"


def test_the_page_is_whole_opens_without_a_network_and_has_a_table():
    page = bar_page(LABELS, PROBS, "A <b> & C")
    assert "<title>A &lt;b&gt; &amp; C</title>" in page
    assert not re.search(r'<(script|link|img)[^>]*(src|href)=', page)
    assert "Plotly.newPlot" in page and len(page) > 1_000_000
    assert "<td>·a</td><td>11.3400%</td>" in page
