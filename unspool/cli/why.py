"""The records of a text as a table, a line for each token; see `llm/why.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import exp
from typing import TYPE_CHECKING

import click

from unspool.show.table import columns, percent

if TYPE_CHECKING:
    from unspool.cli.verb import Setup
    from unspool.engine.stages import Stage
    from unspool.llm.results import Output
    from unspool.llm.why import Why

LEGEND = "under each rule: the probability it removed; ~ what it moved among the rest"
LEAST_MOVED = 1e-6  # less is rounding


def print_records(output: Output, options: Setup) -> None:
    """The records of each choice, where the request asked for them."""
    for number, choice in enumerate(output, 1):
        if not choice.whys:
            return
        if number == 1:
            options.say(f"{LEGEND}; seed {output.seed}")
        if len(output) > 1:
            options.say(f"--- {number} of {len(output)}")
        click.echo()
        for line in columns(list(rows(choice.whys)), left=1):
            click.echo(line)


def rows(whys: Sequence[Why]) -> Iterator[tuple[str, ...]]:
    rules = (str(replace(rule, data=())) for rule in whys[0].row.seat.rules)  # data may be long
    yield ("token", "model", "final", "rank", *rules, "left", "least kept", "runner-up", "behind")
    for why in whys:
        final, last = exp(why.processed_logprob), why.processed_rank
        second, stages = why.runner_up, why.stages
        cuts = [stage.cutoff for stage in stages if stage.cutoff is not None]
        yield (
            why.named(why.id),
            percent(exp(why.logprob)) or "0",
            percent(final) or "0",
            f"{why.rank} -> {'-' if last is None else last}",
            *map(effect, stages),
            str(why.left),
            percent(cuts[-1].kept) if cuts else "",
            "" if second is None else f"{why.named(second.id)} {percent(second.prob)}",
            "" if second is None else f"{second.behind:.3f}",
        )


def effect(stage: Stage) -> str:
    """What a rule did, in one cell."""
    moved = percent(stage.moved) if stage.moved > LEAST_MOVED else ""
    return " ".join(filter(None, [percent(stage.mass), moved and f"~{moved}"]))
