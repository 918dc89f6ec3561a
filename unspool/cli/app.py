"""The command `unspool`: finds the verb, runs it, and turns what went wrong into an exit code.

A verb is imported when it is used. 0 all done; 1 failed while running; 2 wrong usage; 3 part of a
batch failed; 4 no such model, or one that cannot be read; 5 out of memory; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module

import click

import unspool
from unspool.core.errors import ModelError, ParameterError, PromptError, TemplateError, UnspoolError

VERBS = {
    "run": "Continue a prompt; what `unspool PROMPT` does.",
    "chat": "Talk with a model.",
    "next": "Show the likeliest next tokens as bars.",
    "score": "Say how probable a text is.",
    "explain": "Show every parameter in effect and where it comes from.",
    "bench": "Measure speed, loading and caches, beside other engines.",
    "models": "List models, fetch one.",
    "env": "Show versions, devices and folders.",
}
LATER = ("step", "compare", "tree", "batch", "serve", "studio", "verify", "plan", "store",
         "train", "replay", "export", "translate", "transcribe")  # fmt: skip
CODES = ((ParameterError, 2), (PromptError, 2), (ModelError, 4), (TemplateError, 4))
OUT_OF_MEMORY = ("can't allocate memory", "out of memory")


class Verbs(click.Group):
    """Loads verbs by name; anything else that comes first is a prompt for `run`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        command: click.Command = import_module(f"unspool.cli.{name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not sys.stdin.isatty():
            args = ["run"]
        elif args and args[0] not in (*VERBS, "-h", "--help", "--version"):
            _refuse_verb(args)
            args = ["run", *args]
        return super().parse_args(ctx, args)


def _refuse_verb(args: list[str]) -> None:
    """Raises UsageError where the first word is meant as a verb that is not there."""
    word, *rest = args
    if word in LATER:
        raise click.UsageError(f"{word}: not in this version; as a prompt: unspool run {word}")
    if rest and not word.startswith("-") and not rest[0].startswith("-"):
        near = get_close_matches(word, VERBS, n=1)
        fix = f"did you mean {near[0]}?" if near else "a prompt of several words needs quotes"
        raise click.UsageError(f"{word}: not a verb; {fix}")


@click.group(
    cls=Verbs,
    no_args_is_help=True,
    subcommand_metavar="VERB | PROMPT [OPTIONS]",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Data goes to stdout, the rest to stderr. `unspool VERB --help` lists a verb's flags.",
)
@click.version_option(unspool.__version__, message="%(prog)s %(version)s")
def cli() -> None:
    """Autoregressive decoding: one loop, every strategy, on real models."""


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line with `args` (default: the process's) and exit with its code."""
    words = list(sys.argv[1:] if args is None else args)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has gone, `| head` for one: nothing is left to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code)


def _run(words: list[str]) -> int:
    try:
        return cli.main(words, prog_name="unspool", standalone_mode=False) or 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        raise
    except Exception as error:
        if "-v" in words or "--verbose" in words:
            traceback.print_exc()
        click.echo(f"Error: {_message(error)}", err=True)
        return exit_code(error)


def exit_code(error: Exception) -> int:
    """The code for an error that ended a verb."""
    if isinstance(error, MemoryError) or any(sign in str(error) for sign in OUT_OF_MEMORY):
        return 5
    return next((code for kind, code in CODES if isinstance(error, kind)), 1)


def _message(error: Exception) -> str:
    if isinstance(error, UnspoolError):
        return str(error)
    return f"{type(error).__name__}: {error} (-v shows where)"
