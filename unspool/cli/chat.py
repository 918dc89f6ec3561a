"""`unspool chat`: a conversation, one line of input a turn."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import click

from unspool.cli.flags import chosen, decoding_flags
from unspool.cli.prompt import system_option
from unspool.cli.run import INTERRUPTED, Writer, report, write
from unspool.cli.verb import Verb, checked, print_json, setup, setup_options
from unspool.cli.why import print_records
from unspool.core.errors import PromptError


@click.command("chat", cls=Verb)
@system_option
@setup_options
@decoding_flags
@click.pass_context
def command(ctx: click.Context, /, **arguments: Any) -> None:
    """Talk with a model.

    Each line is a message. /clear begins anew, /exit or Ctrl-D ends, Ctrl-C stops an answer.
    Piped lines are answered in turn; --json prints one result a line.
    """
    options, params, system = setup(arguments), chosen(arguments), arguments["system"]
    if checked(params).n not in (None, 1):
        raise click.UsageError("--n: a chat goes on with one answer; use `unspool run -s` for more")
    start = [] if system is None else [{"role": "system", "content": system}]
    messages = list(start)
    with options.model() as lm:
        for line in lines():
            if line == "/clear":
                messages = list(start)
                continue
            asked = [*messages, {"role": "user", "content": line}]
            try:
                output, interrupted = write(
                    lm, asked, params, options, None if options.json else Writer()
                )
            except PromptError as error:
                if not sys.stdin.isatty():
                    raise
                click.echo(f"Error: {error} (/clear begins anew)", err=True)
                continue
            if options.json:
                print_json(output.to_json())
            else:
                print_records(output, options)
            report(output, options)
            if interrupted and not sys.stdin.isatty():
                ctx.exit(INTERRUPTED)
            messages = [*asked, {"role": "assistant", "content": output.text}]


def lines() -> Iterator[str]:
    """What the user says, until /exit or the end of input; empty lines are no messages."""
    if sys.stdin.isatty():
        with suppress(ImportError):
            import readline  # noqa: F401 - gives the line its history and arrow keys
    while True:
        try:
            line = input("> ") if sys.stdin.isatty() else next(sys.stdin).rstrip("\r\n")
        except (EOFError, StopIteration):
            return
        if line == "/exit":
            return
        if line.strip():
            yield line
