"""What every verb has in common: the model's options, what is printed where, sections in help.

Data goes to stdout, everything else to stderr. Imports no model: `Setup.model` does, when asked.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from unspool.cli.flags import Flag
from unspool.show.progress import Progress

if TYPE_CHECKING:
    from unspool.llm.llm import LLM


@dataclass(frozen=True, slots=True)
class Setup:
    """The options that every verb with a model takes; None is left to `unspool.load`."""

    name: str | None
    numerics: str | None
    device: str | None
    json: bool
    quiet: bool
    verbose: bool

    @contextmanager
    def model(self) -> Iterator[LLM]:
        """The model, loaded; closed at the end."""
        # Threads that spin while they wait cost much when other programs want the cores (a step
        # was nine times slower), and save little when none does. Read when torch is imported.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        with Progress(f"loading {self.name or 'the default model'}", sys.stderr, quiet=self.quiet):
            import unspool

            asked = {"numerics": self.numerics, "device": self.device}
            given = {name: value for name, value in asked.items() if value is not None}
            loaded = unspool.load(self.name, **given)
        with loaded as lm:
            self.notes(lm.notes)
            yield lm

    def say(self, text: str) -> None:
        """A line on stderr, unless -q."""
        if not self.quiet:
            click.echo(text, err=True)

    def notes(self, notes: Sequence[str]) -> None:
        for note in notes:
            self.say(f"note: {note}")


class Verb(click.Command):
    """A command whose help lists its own options first and the decoding flags in sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for option in self.get_params(ctx):
            section = option.section if isinstance(option, Flag) else "Options"
            record = option.get_help_record(ctx)
            if record and isinstance(option, click.Option):
                sections.setdefault(section.capitalize(), []).append(record)
        for section, records in sections.items():
            with formatter.section(section):
                formatter.write_dl(records)


def setup_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds -m, --numerics, --device, --json, -q and -v; see `setup`."""
    for add in (
        click.option("-v", "--verbose", is_flag=True, help="Say more on stderr."),
        click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors on stderr."),
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option("--device", metavar="NAME", help="cpu, cuda, mps, or auto.  [default: auto]"),
        click.option("--numerics", metavar="NAME", help="How the numbers are computed."),
        click.option(
            "-m",
            "--model",
            "name",
            metavar="NAME",
            help="A name, a folder, a .gguf file or a Hugging Face id.  [default: smollm2]",
        ),
    ):
        function = add(function)
    return function


def setup(arguments: dict[str, Any]) -> Setup:
    """Takes the common options out of a verb's arguments."""
    names = ("name", "numerics", "device", "quiet", "verbose")
    return Setup(json=arguments.pop("as_json"), **{name: arguments.pop(name) for name in names})


def print_json(value: Mapping[str, object]) -> None:
    """One line for a program, indented for a person at a terminal."""
    indent = 2 if sys.stdout.isatty() else None
    click.echo(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent))
