"""Bars of the likeliest next tokens, in the terminal and as a Plotly chart.

Draws rows of plain numbers and knows no model, no engine and no file. rich and Plotly are imported
when something is drawn.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Protocol, TextIO

from unspool.show.visible import visible

if TYPE_CHECKING:
    import plotly.graph_objects as go

BAR_CELLS = 30
EIGHTHS = " ▏▎▍▌▋▊▉█"
COLOUR = "#0072b2"  # the blue of Okabe and Ito's palette, safe for colour-blind eyes
TITLE_CHARS = 158  # a longer prompt is shown by its end, where the next token is


class Row(Protocol):
    """One token of a distribution: its id, its printable text, its probability in 0..1."""

    @property
    def id(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def prob(self) -> float: ...


def terminal_bars(rows: Sequence[Row], file: TextIO, *, title: str = "", note: str = "") -> None:
    """Print one line a row: bar, percent, id, text. The likeliest fills the bar's width.

    Colour only on a terminal, and not under NO_COLOR; plain `#` where the encoding has no blocks.
    """
    from rich.console import Console
    from rich.text import Text

    console = Console(file=file, highlight=False, markup=False, emoji=False)
    ascii_only = console.options.ascii_only
    top = max((row.prob for row in rows), default=0.0)
    digits = max((len(str(row.id)) for row in rows), default=1)
    if title:
        console.print(Text(_plain(title, ascii_only), style="bold"), soft_wrap=True)
    for row in rows:
        bar = bar_of(row.prob / top if top else 0.0, ascii_only=ascii_only)
        shown = _plain(visible(row.text), ascii_only)
        line = Text.assemble((bar, "cyan"), f" {row.prob:7.2%}  {row.id:>{digits}}  ", shown)
        console.print(line, soft_wrap=True)
    if note:
        console.print(Text(_plain(note, ascii_only), style="dim"), soft_wrap=True)


def bar_of(share: float, cells: int = BAR_CELLS, *, ascii_only: bool = False) -> str:
    """A bar of `share` (0..1) of `cells` character cells, padded to that width."""
    share = min(max(share, 0.0), 1.0)
    if ascii_only:
        return ("#" * round(share * cells)).ljust(cells)
    full, part = divmod(round(share * cells * 8), 8)
    return ("█" * full + EIGHTHS[part] * (part > 0)).ljust(cells)


def plotly_bars(labels: Sequence[str], probs: Sequence[float], title: str) -> go.Figure:
    """A Plotly figure of `probs` (0..1), the first on top, with `title` (the prompt) above it."""
    import plotly.graph_objects as go

    places = list(range(len(probs)))  # not the labels: two tokens may look alike
    names = [_markup(label) for label in labels]
    bars = go.Bar(
        x=list(probs),
        y=places,
        orientation="h",
        marker_color=COLOUR,
        text=[f"{prob:.2%}" for prob in probs],
        textposition="outside",
        cliponaxis=False,
        customdata=names,
        hovertemplate="%{customdata}<br>%{x:.4%}<extra></extra>",
    )
    figure = go.Figure(bars)
    figure.update_layout(
        title=_title(title),
        template="plotly_white",
        height=140 + 32 * len(places),
        margin={"l": 20, "r": 70, "t": 90},
    )
    figure.update_xaxes(title="probability", tickformat=".0%", rangemode="tozero")
    figure.update_yaxes(autorange="reversed", tickvals=places, ticktext=names, automargin=True)
    figure.update_yaxes(tickfont_size=15, ticklabelstandoff=8)  # the dot of a space is small
    return figure


def bar_page(labels: Sequence[str], probs: Sequence[float], title: str) -> str:
    """`plotly_bars` as a whole HTML page: about 5 MB, since it brings Plotly and needs no network.

    The same numbers stand in a table below the chart, for readers who cannot see it.
    """
    figure = plotly_bars(labels, probs, title)
    chart = figure.to_html(full_html=False, include_plotlyjs=True, config={"displaylogo": False})
    lines = "".join(
        f"<tr><td>{_markup(label)}</td><td>{prob:.4%}</td></tr>"
        for label, prob in zip(labels, probs, strict=True)
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title>\n"
        "<style>body{font-family:sans-serif} td,th{padding:0 1em;text-align:left}</style></head>\n"
        f"<body>{chart}\n<details><summary>As a table</summary><table>"
        f"<tr><th>token</th><th>probability</th></tr>{lines}</table></details>"
        "</body>\n</html>\n"
    )


def _markup(text: str) -> str:
    """Plotly reads tags and entities, though no `&quot;`; a token that looks like one stays."""
    return escape(visible(text), quote=False)


def _title(prompt: str) -> str:
    shown = prompt if len(prompt) <= TITLE_CHARS else "…" + prompt[-TITLE_CHARS:]
    lines = textwrap.wrap(shown, 80) or ["(empty prompt)"]
    return "<br>".join(escape(line, quote=False) for line in lines)


def _plain(text: str, ascii_only: bool) -> str:
    return text.encode("ascii", "backslashreplace").decode() if ascii_only else text
