"""`unspool score`: how probable a text is, token by token and in all."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from unspool.cli.flags import read_as
from unspool.cli.prompt import prompt_options, read_prompt
from unspool.cli.run import Writer
from unspool.cli.verb import Verb, print_json, setup, setup_options, working
from unspool.show.text import print_legend


@click.command("score", cls=Verb)
@prompt_options
@click.option("--given", metavar="TEXT", help="What stands before the text and is not scored.")
@click.option(
    "--show",
    type=click.Choice(["prob"]),
    metavar="prob",
    help="Print the text tinted by probability.",
)
@click.option(
    "--watermark",
    metavar="JSON",
    help="Look for this mark too; the value is that of `run --watermark`.",
)
@setup_options
def command(**arguments: Any) -> None:
    """Score PROMPT: its log-probability (natural), perplexity and bits per byte.

    PROMPT may be the name of a file, whose text is then scored.
    """
    options, mark = setup(arguments), arguments["watermark"]
    mark = mark and read_as("watermark", mark)
    words, prompt, file = arguments["words"], arguments["prompt"], arguments["file"]
    if prompt is None and file is None and _is_file(words):
        options.say(f"scoring the text of the file {words} (its name itself: -p {words})")
        words, file = None, words
    text = read_prompt(words, prompt, file)
    with options.model() as lm, working("reading the text", options.quiet):
        score = lm.score(text, given=arguments["given"])
        found = mark and lm.detect(score.output, mark, arguments["given"])
    if options.json:
        print_json(score.to_json() | ({"watermark": found.json()} if found else {}))
        return
    if arguments["show"]:
        if not options.quiet:
            print_legend(sys.stderr)
        tokens = score.output.tokens
        known = b"".join(token.bytes for token in tokens).decode("utf-8", "replace")
        writer = Writer(tint=True)
        writer.add(text.removesuffix(known), ())  # before the first scored token
        writer.add(known, tokens)
        writer.finish(text)
    click.echo(f"tokens scored   {score.scored} of {len(score.tokens)}")
    click.echo(f"log-probability {score.logprob:.4f}")
    click.echo(f"perplexity      {score.perplexity:.4f}")
    click.echo(f"bits per byte   {score.bits_per_byte:.4f}")
    if found:
        click.echo(f"watermark       {'found' if found.marked else 'not found'}: z {found.z:.2f}, "
                   f"p {found.p_value:.2g}, {found.counted} tokens judged")


def _is_file(words: str | None) -> bool:
    try:
        return bool(words) and Path(str(words)).is_file()
    except (OSError, ValueError):  # too long for a name, or with a character no name has
        return False
