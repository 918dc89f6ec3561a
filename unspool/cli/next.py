"""`unspool next`: the likeliest next tokens, as bars, as JSON or as a page with a chart."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from unspool.cli.flags import chosen, decoding_flags
from unspool.cli.prompt import prompt_options, read_prompt, system_option, with_system
from unspool.cli.verb import Verb, checked, print_json, save_page, setup, setup_options, working
from unspool.show.bars import bar_page, terminal_bars


@click.command("next", cls=Verb)
@prompt_options
@system_option
@click.option(
    "-k", "k", type=click.IntRange(min=1), default=10, show_default=True, help="How many tokens."
)
@click.option("--plot", metavar="FILE.html", help="Write a chart too, as one page.")
@setup_options
@decoding_flags
def command(**arguments: Any) -> None:
    """Show the likeliest tokens after PROMPT with their probabilities.

    The model's own probabilities; with flags such as --temperature or --top-p, those after them.
    """
    options, params = setup(arguments), chosen(arguments)
    checked(params)
    words = read_prompt(arguments["words"], arguments["prompt"], arguments["file"])
    with options.model() as lm:
        with working("reading the prompt", options.quiet):
            found = lm.next(with_system(words, arguments["system"]), **params)
        rows = found.top(arguments["k"])
        if path := arguments["plot"]:
            page = bar_page([row.text for row in rows], [row.prob for row in rows], words)
            save_page(page, Path(path))
            options.say(f"wrote {path}")
        if options.json:
            print_json(found.to_json(arguments["k"]))
        else:
            entropy = f"entropy {found.entropy_bits:.2f} bits"
            note = f"{found.model}, numerics {found.numerics}, {entropy}"
            terminal_bars(rows, sys.stdout, title=words, note=note)
