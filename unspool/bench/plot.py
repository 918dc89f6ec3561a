"""The report as a chart: speed against length or batch, one line an engine, in one HTML page."""
from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from unspool.bench.table import shown

if TYPE_CHECKING:
    import plotly.graph_objects as go

# Okabe and Ito's palette, safe for colour-blind eyes; ours comes first.
COLOURS = ("#0072b2", "#56b4e9", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#000000")


def chart(report: Mapping[str, Any]) -> go.Figure:
    """A line of medians for each engine or cache, with whiskers from the lowest to the highest."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for i, (name, points) in enumerate(lines(report).items()):
        figure.add_scatter(
            name=name, x=[p["x"] for p in points], y=[p["median"] for p in points],
            mode="lines+markers", line_color=COLOURS[i % len(COLOURS)],
            error_y={"array": [max(p["samples"]) - p["median"] for p in points],
                     "arrayminus": [p["median"] - min(p["samples"]) for p in points],
                     "thickness": 1})
    settings = report["settings"]
    figure.update_layout(
        title=f"{report['measure']}: {escape(settings['model'])}; rounds: {settings['rounds']}",
        template="plotly_white", xaxis_title=settings.get("axis", "tokens"),
        yaxis_title=report["unit"])
    if report["measure"] == "cache":  # without a cache a token costs a hundred times more
        figure.update_yaxes(type="log")
    else:
        figure.update_yaxes(rangemode="tozero")
    figure.update_xaxes(type="log", tickvals=sorted({p["x"] for points in lines(report).values()
                                                     for p in points}))
    return figure


def lines(report: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """The points that have a place, by engine or cache, in their order."""
    rows = report["ours"]["methods"] if report["measure"] == "cache" else shown(report)
    return {name: sorted((p for p in row["points"].values() if p["x"] is not None),
                         key=lambda point: int(point["x"])) for name, row in rows.items()}


def page(report: Mapping[str, Any]) -> str:
    """A whole HTML page, about 5 MB, since it brings Plotly and needs no network."""
    made = chart(report).to_html(full_html=True, include_plotlyjs=True,
                                 config={"displaylogo": False})
    return str(made)
