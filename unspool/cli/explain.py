"""`unspool explain`: what a request with these flags would use, and where each value comes from.

With --against it writes a text and says where another engine's order would have written another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from unspool.cli.flags import chosen, decoding_flags
from unspool.cli.prompt import Prompt, prompt_options, read_prompt, system_option, with_system
from unspool.cli.verb import Setup, Verb, checked, print_json, setup, setup_options, working
from unspool.core.params import fields
from unspool.show.table import columns

if TYPE_CHECKING:
    from unspool.llm.explain import Explanation, Part
    from unspool.llm.llm import LLM


@click.command("explain", cls=Verb)
@prompt_options
@system_option
@click.option(
    "--against",
    metavar="ORDER",
    help="Continue PROMPT, and say which token would differ first in this order of the rules (a "
    "dialect, or stages with commas), and which rule makes it differ.",
)
@setup_options
@decoding_flags
def command(**arguments: Any) -> None:
    """Show the effective parameters, the source of each, the strategy, the rules and the stops.

    Sources: user (a flag), model (its own generation config), dialect (what --order brings),
    default, derived (from others). With a PROMPT its length counts too. Nothing is written, but
    with --against.
    """
    options, params = setup(arguments), chosen(arguments)
    checked(params)
    prompt, other = prompt_of(arguments), arguments["against"]
    with options.model() as lm:
        if other is not None:
            orders = {"order": other, "ours": params.pop("order", None)}
            print_difference(lm, prompt, params | orders, options)
            return
        explanation = lm.explain(prompt, **params)
    if options.json:
        print_json(explanation.to_json())
        return
    print_explanation(explanation)
    options.notes(explanation.notes)


def prompt_of(arguments: dict[str, Any]) -> Prompt | None:
    """The prompt; None where none was given and none is needed."""
    given = [arguments[name] for name in ("words", "prompt", "file")]
    if arguments["against"] is None and given == [None] * 3:
        if arguments["system"] is not None:
            raise click.UsageError("-s: a system message needs a PROMPT beside it")
        return None
    return with_system(read_prompt(*given), arguments["system"])


def print_explanation(found: Explanation) -> None:
    table = fields()
    rows = [(name, str(value) or '""', source) for name, value, source in found.rows
            if source != "default" or not table[name].is_neutral(value)]
    for line in columns([("parameter", "value", "source"), *rows], left=3):
        click.echo(line)
    click.echo(f"and {len(found.rows) - len(rows)} defaults that change nothing; --json has all")
    click.echo("" if found.program else f"\nstrategy  {found.strategy}")
    click.echo(f"order     {found.dialect}")
    for number, part in enumerate(found.program, 1):
        texts = "" if number == 1 else f", takes over {part.takes} of the texts"
        click.echo(f"stage {number}   {part.plan}{texts}\nstrategy  {part.strategy}")
        print_shaping(part)
    if not found.program:
        print_shaping(found)
    click.echo(f"stops     {', '.join(found.stops) or 'none'}")


def print_shaping(found: Explanation | Part) -> None:
    """The mixes and the rules, in order."""
    for name, steps in (("mixes", found.mixes), ("rules", found.order)):
        lines = [f"{place}. {step}" for place, step in enumerate(steps, 1)]
        for line in lines or (["none"] if name == "rules" else []):
            click.echo(f"{name:10}{line}")
            name = ""


def print_difference(lm: LLM, prompt: Any, params: dict[str, Any], options: Setup) -> None:
    """What differs between two orders: `params` holds them as `ours` and `order`."""
    with working("writing", options.quiet):
        found = lm.against(prompt, **params)
    if options.json:
        print_json(found.to_json())
        return
    click.echo(str(found))
    options.say(f"seed {found.seed}")
    options.notes(found.ours.notes)
    for note in found.theirs.notes:
        if note not in found.ours.notes:
            options.say(f"note ({found.theirs.name}): {note}")
