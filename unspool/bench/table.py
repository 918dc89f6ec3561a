"""The report for people: tables of engines and points, and what to think of them."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.table import Table

Report = Mapping[str, Any]
WIDTH = 160  # of a file or a pipe, which wraps nothing


def print_report(report: Report, file: TextIO) -> None:
    """Print a report as `Session` makes it."""
    from rich.console import Console

    width = None if file.isatty() else WIDTH
    console = Console(file=file, width=width, highlight=False, markup=False, emoji=False)
    if report["measure"] == "cache":
        console.print(caches(report))
    else:
        console.print(engines(report))
        if len(next(iter(shown(report).values()), {"points": {}})["points"]) > 1:
            console.print(points(report))
        for line in built(report):
            console.print(line, soft_wrap=True)
    for line in [*searches(report), *roofline(report), *texts(report), *remarks(report)]:
        console.print(line, soft_wrap=True)


def shown(report: Report) -> dict[str, Any]:
    """All engines that were measured, ours first, under the names they are printed with."""
    ours = {"unspool": report["ours"]} if report["ours"] else {}
    others = {f"unspool {name}": made for name, made in report["variants"].items()}
    return {**ours, **others, **report["peers"]}


def table(title: str, *columns: str) -> Table:
    from rich import box
    from rich.table import Table

    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for i, column in enumerate(columns):
        made.add_column(column, justify="left" if i == 0 else "right")
    return made


def engines(report: Report) -> Table:
    unit, main = report["unit"], report["main"]
    title = f"{report['measure']}: {main}; rounds: {report['settings']['rounds']}"
    faster = "ours is faster by"
    made = table(title, "engine", unit, "lowest", "highest", faster, "equal tokens", "threads")
    for name, engine in shown(report).items():
        point = engine["points"][main]
        ratio = f"{report['ratios'][name]:.2f}x" if name in report["ratios"] else "-"
        if engine.get("misconfigured"):  # no fair one
            ratio = f"({ratio})"
        made.add_row(name, number(point["median"]), number(min(point["samples"])),
                     number(max(point["samples"])), ratio,
                     str(engine.get("equal_tokens", "-")), str(engine.get("threads", "-")))
    return made


def points(report: Report) -> Table:
    """Each point's median, by engine."""
    every = shown(report)
    labels = dict.fromkeys(label for engine in every.values() for label in engine["points"])
    made = table(f"median {report['unit']}", report["settings"].get("axis", ""), *every)
    for label in labels:
        cells = (engine["points"].get(label) for engine in every.values())
        made.add_row(label, *("-" if cell is None else number(cell["median"]) for cell in cells))
    return made


def caches(report: Report) -> Table:
    methods = report["ours"]["methods"]
    labels = dict.fromkeys(label for row in methods.values() for label in row["points"])
    made = table(f"caches; rounds: {report['settings']['rounds']}", "method",
                 *(f"MB at {label}" for label in labels), *(f"ms at {label}" for label in labels))
    made.add_column("where it is used", justify="left")
    for name, row in methods.items():
        sizes = (row["memory_bytes"].get(label) for label in labels)
        made.add_row(name, *("-" if size is None else f"{size / 1e6:.0f}" for size in sizes),
                     *(number(row["points"][label]["median"]) for label in labels), row["used"])
    return made


def built(report: Report) -> list[str]:
    """How each engine was built and computes."""
    return [f"{name}: version {engine.get('version')}, {engine.get('dtype')}; "
            f"{engine.get('cache')}; {engine.get('build')}"
            for name, engine in shown(report).items()]


def roofline(report: Report) -> list[str]:
    found = report["roofline"]
    if not found:
        return []
    if found["bandwidth_gb_s"] is None:
        return ["roofline: nothing could be read"]
    by = ", ".join(f"{name} {row['median_gb_s']:.1f}" for name, row in found["readers"].items())
    kinds = ", ".join(f"{row['tensors']} {row['type']} {row['bytes'] / 1e6:.1f} MB"
                      for row in found["tensors"])
    lines = [f"roofline: {found['bandwidth_gb_s']:.1f} GB/s (readers: {by}); a token reads "
             f"{found['bytes_per_token'] / 1e6:.1f} MB (stored: {kinds})"]
    lines += [f"reader {name} is missing: {why}" for name, why in found["missing"].items()]
    lines += [f"{name} reaches {engine['roofline_share']:.0%} of it"
              for name, engine in shown(report).items() if engine.get("roofline_share")]
    return lines + ([found["failed"]] if found["failed"] else [])


def texts(report: Report) -> list[str]:
    text = report.get("text")
    if not text:
        return []
    same = ", ".join(f"{name} {count}" for name, count in text["equal"].items())
    return [f"{text['what']} equal to those of {text['by']}, of {text['tokens']}: {same}"]


def searches(report: Report) -> list[str]:
    """What beams cost, for each engine that was asked for them."""
    return [f"{name}: beams take {times:.2f} times as long as so many samples, the median of the "
            "rounds" for name, times in report.get("times_samples", {}).items()]


def remarks(report: Report) -> list[str]:
    machine = report["machine"]
    lines = [f"missing: {name}: {why}" for name, why in report["missing"].items()]
    lines += [f"note: {note}" for note in report["notes"]]
    lines += [f"note: {name}: {note}" for name, engine in shown(report).items()
              for note in engine.get("notes", ())]
    memory = "" if machine["memory"] is None else f", {machine['memory'] / 2**30:.0f} GiB"
    return [*lines, f"machine: {machine['cpu']}, {machine['cores']} cores{memory}, "
                    f"load {machine['load']} at the start"]


def number(value: float) -> str:
    """Three or four digits, as far as the figures are worth them."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
