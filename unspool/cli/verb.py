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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unspool.cli.flags import Flag
from unspool.show.progress import Progress

if TYPE_CHECKING:
    from unspool.core.params import Params
    from unspool.llm.llm import LLM


# How a model is loaded; each name is also one of `unspool.load`, which checks the values.
LOADING: dict[str, dict[str, Any]] = {
    "numerics": {
        "metavar": "NAME",
        "help": "default, fast or reference: how the numbers are computed.",
    },
    "device": {"metavar": "NAME", "help": "cpu, cuda, mps, or auto.  [default: auto]"},
    "threads": {"type": int, "metavar": "N", "help": "Cores to use.  [default: all]"},
    "memory": {"metavar": "NAME", "help": "dense, full or none: what is remembered of a text."},
    "kv": {"metavar": "NAME", "help": "f32, bf16 or int8: how keys and values are kept."},
    "quantize": {"metavar": "NAME", "help": "int8: round weights that are stored in floats."},
}


@dataclass(frozen=True, slots=True)
class Setup:
    """The options that every verb with a model takes; None is left to `unspool.load`."""

    name: str | None
    load: dict[str, Any]  # what was given of LOADING
    json: bool
    quiet: bool
    verbose: bool

    @contextmanager
    def model(self) -> Iterator[LLM]:
        """The model, loaded; closed at the end."""
        # Threads that spin while they wait cost much when other programs want the cores (a step
        # was nine times slower), and save little when none does. Read when torch is imported.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        with working(f"loading {self.name or 'the default model'}", self.quiet):
            import unspool

            loaded = unspool.load(self.name, **self.load)
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


@contextmanager
def working(what: str, quiet: bool) -> Iterator[None]:
    """Progress that also says so when kernels are being compiled meanwhile."""
    with Progress(what, sys.stderr, quiet=quiet) as progress:
        from unspool.kernels.machine import jit

        def watch(kernel: str) -> None:
            progress.say(f"{what}, compiling {kernel} (once)")

        jit.WATCHERS.append(watch)
        try:
            yield
        finally:
            jit.WATCHERS.remove(watch)


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
    """Adds -m, a flag for each of LOADING, --json, -q and -v; see `setup`."""
    for add in (
        click.option("-v", "--verbose", is_flag=True, help="Say more on stderr."),
        click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors on stderr."),
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        *(click.option(f"--{name}", **how) for name, how in reversed(LOADING.items())),
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
    asked = {name: arguments.pop(name) for name in LOADING}
    load = {name: value for name, value in asked.items() if value is not None}
    own = {name: arguments.pop(name) for name in ("name", "quiet", "verbose")}
    return Setup(load=load, json=arguments.pop("as_json"), **own)


def checked(params: Mapping[str, Any]) -> Params:
    """What the flags ask for; what cannot work by itself is said before a model is loaded."""
    from unspool.llm.resolve import named  # which reads the string form of strategies

    return named(params)


def print_json(value: Mapping[str, object]) -> None:
    """One line for a program, indented for a person at a terminal."""
    indent = 2 if sys.stdout.isatty() else None
    click.echo(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent))


def save_page(page: str, path: Path) -> None:
    """Write a chart's page. Raises ClickException where that cannot be."""
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise click.ClickException(
            f"{path}: cannot be written ({reason}); name a file in a folder that is there"
        ) from None
