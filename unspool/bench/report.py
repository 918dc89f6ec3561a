"""The report of a run: plain data, as `--json` prints it and as the table and the chart read it.

Knows what was measured and computes medians, ratios and shares; it measures nothing.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from unspool.bench.quoted import misconfigured
from unspool.bench.race import Race
from unspool.bench.roofline import HIGHEST_SHARE, Weights, bandwidth, share

RATE, SECONDS, MS = "tokens/s", "s", "ms"

KEYS = {RATE: "tokens_per_s", SECONDS: "seconds", MS: "ms"}


@dataclass(frozen=True, slots=True)
class Run:
    """What a report is made of. `ours`: our engines by numerics, the compared one first.

    `main`: the point by which engines are compared; `places`: each point's place in a chart.
    `quoted`: whether this is the model that peers' figures are quoted of.
    """

    verb: str
    unit: str
    main: str
    places: Mapping[str, int | None]
    ours: Sequence[str]
    found: Race
    missing: Mapping[str, str]
    notes: Sequence[str]
    machine: Mapping[str, Any]
    settings: Mapping[str, Any]
    weights: Weights | None = None
    quoted: bool = False
    text: Mapping[str, Any] = field(default_factory=dict)


def report(run: Run) -> dict[str, Any]:
    """The whole report. `ours` is None when our own engine is among the missing."""
    speed = bandwidth(run.found.read)
    entries = {name: entry(run, name, points) for name, points in run.found.samples.items()}
    peers = {name: made for name, made in entries.items() if name not in run.ours}
    notes = list(run.notes)
    for name, made in peers.items():
        made["misconfigured"] = judged(run, name, made, speed)
        if made["misconfigured"]:
            notes.append(f"{name} looks misconfigured: {made['misconfigured']}")
    roofline = roof(run, speed)
    for name in run.ours:
        if name in entries:
            reached(run, entries[name], name, speed, roofline)
    first, *others = run.ours
    for name in others:
        if name in entries:
            entries[name]["ratios"] = ratios(run, entries[name], peers)[run.main]
    ours = entries.get(first)
    compared = ratios(run, ours, peers) if ours else {}
    return {
        "measure": run.verb, "unit": run.unit, "main": run.main,
        "machine": dict(run.machine), "settings": dict(run.settings), "roofline": roofline,
        "ours": ours, "variants": {name: entries[name] for name in others if name in entries},
        "peers": peers, "ratios": compared.get(run.main, {}), "ratios_at": compared,
        "missing": dict(run.missing), "text": dict(run.text), "notes": notes,
    }


def entry(run: Run, name: str, points: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """What is known of one engine: its facts, and each point's median and raw samples."""
    middles = {label: median(samples) for label, samples in points.items()}
    made: dict[str, Any] = {
        KEYS[run.unit]: middles.get(run.main),
        "points": {label: {"x": run.places.get(label), "median": middles[label],
                           "samples": list(points[label])} for label in points},
        **run.found.facts.get(name, {}),
    }
    if name in run.text.get("equal", {}):
        made["equal_tokens"] = run.text["equal"][name]
    return made


def judged(run: Run, name: str, made: Mapping[str, Any], speed: float | None) -> str | None:
    if not run.quoted or made.get("tokens_per_s") is None:
        return None
    return misconfigured(run.verb, run.main, name, made["tokens_per_s"], speed)


def roof(run: Run, speed: float | None) -> dict[str, Any]:
    """What the readers found and what a token reads; empty where nothing was read."""
    if run.weights is None:
        return {}
    return {
        "bandwidth_gb_s": speed,
        "readers": {name: {"median_gb_s": median(passes), "samples": list(passes)}
                    for name, passes in run.found.read.items()},
        "missing": dict(run.found.unread),
        "bytes_per_token": run.weights.read_by(run.ours[0]), "tensors": run.weights.json(),
        "failed": None,
    }


def reached(run: Run, made: dict[str, Any], name: str, speed: float | None,
            roofline: dict[str, Any]) -> None:
    """The share of the bandwidth that decoding reached; a share beyond reason fails the probe."""
    made["roofline_share"] = None
    if run.verb != "decode" or run.weights is None or made["tokens_per_s"] is None:
        return
    reads = run.weights.read_by(name)
    found = share(reads, made["tokens_per_s"], speed)
    made["bytes_per_token"] = reads
    if found is not None and found > HIGHEST_SHARE:
        roofline["failed"] = (f"{name} would read {found:.0%} of the bandwidth: the probe has "
                              "failed, and there is no share")
    else:
        made["roofline_share"] = found


def ratios(run: Run, ours: Mapping[str, Any], peers: Mapping[str, Mapping[str, Any]]
           ) -> dict[str, dict[str, float]]:
    """How many times faster ours is than each peer, by point; above 1 ours is faster."""
    found: dict[str, dict[str, float]] = {}
    for label, mine in ours["points"].items():
        found[label] = {
            name: faster(run.unit, mine["median"], peer["points"][label]["median"])
            for name, peer in peers.items() if label in peer["points"]
        }
    return found


def faster(unit: str, ours: float, theirs: float) -> float:
    """Ours to theirs as rates: times count by their inverse."""
    return ours / theirs if unit == RATE else theirs / ours


def equal(ids: Iterable[int], reference: Iterable[int]) -> int:
    """How many tokens two texts have in common before they part."""
    same = 0
    for one, other in zip(ids, reference, strict=False):
        if one != other:
            break
        same += 1
    return same
