"""`unspool explain`: what a request with these flags would use, and where each value comes from."""

from __future__ import annotations

from typing import Any

import click

from unspool.cli.flags import chosen, decoding_flags
from unspool.cli.verb import Verb, print_json, setup, setup_options
from unspool.core.params import Params


@click.command("explain", cls=Verb)
@setup_options
@decoding_flags
def command(**arguments: Any) -> None:
    """Show the effective parameters, the source of each, the strategy, the rules and the stops.

    Sources: user (a flag), model (its own generation config), default, derived (from others).
    """
    options, params = setup(arguments), chosen(arguments)
    Params.of(params)
    with options.model() as lm:
        explanation = lm.explain(**params)
    if options.json:
        print_json(explanation.to_json())
        return
    rows = [(name, str(value) or '""', source) for name, value, source in explanation.rows]
    rows.insert(0, ("parameter", "value", "source"))
    name_width, value_width = (max(len(row[i]) for row in rows) for i in (0, 1))
    for name, value, source in rows:
        click.echo(f"{name:<{name_width}}  {value:<{value_width}}  {source}")
    click.echo(f"\nstrategy  {explanation.strategy}")
    click.echo(f"rules     {', '.join(explanation.order) or 'none'}")
    click.echo(f"stops     {', '.join(explanation.stops) or 'none'}")
    options.notes(explanation.notes)
