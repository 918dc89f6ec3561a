"""Prints `docs/cli.md` from the program's own help; `--write` puts it there."""

import re
import sys
from copy import copy
from pathlib import Path

import click

from unspool.cli import app
from unspool.cli.flags import Flag

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
WIDTH = 96
HEAD = """# The command line

Printed from the program: what `unspool --help` and `unspool VERB --help` say. The decoding flags
are the same for every verb that takes them, and stand once, below.

```bash
unspool "The color of sky is" --temperature 0.8 --top-p 0.95 --seed 0 --max-new-tokens 20
echo "Once upon a time" | unspool run --strategy beam:4 --max-new-tokens 10 --json
unspool score "The color of sky is blue" --given "Look up."
```
"""
ROOT = click.Context(
    app.cli,
    info_name="unspool",
    terminal_width=WIDTH,
    help_option_names=app.cli.context_settings["help_option_names"],
)


def verb(name: str) -> click.Command:
    command = app.cli.get_command(ROOT, name)
    assert command is not None, "the list of verbs names only verbs"
    return command


def flags_of(command: click.Command) -> list[click.Parameter]:
    return [option for option in command.params if isinstance(option, Flag)]


def help_of(command: click.Command, name: str, params: list[click.Parameter]) -> str:
    """The help of the command if it had these parameters only."""
    part = copy(command)
    part.params = params
    return part.get_help(click.Context(part, ROOT, info_name=name))


def decoding_flags() -> str:
    """The decoding flags, section by section."""
    run = verb("run")
    text = help_of(run, "run", flags_of(run))
    return text[text.index("Temperature and curves:") :]


def block(text: str) -> str:
    return f"```text\n{text.strip()}\n```\n"


def codes() -> str:
    """The exit codes, as the program's own file lists them."""
    listed = re.findall(r"(\d+) ([^;]+)[;.]", " ".join(str(app.__doc__).split()))
    rows = "".join(f"| {code} | {when} |\n" for code, when in listed)
    return f"## Exit codes\n| code | when |\n| --- | --- |\n{rows}"


def page() -> str:
    """The whole page."""
    parts = [HEAD, block(app.cli.get_help(ROOT))]
    for name in app.VERBS:
        command = verb(name)
        flags = flags_of(command)
        own = [option for option in command.params if option not in flags]
        parts += [f"## {name}", block(help_of(command, name, own))]
        if flags:
            parts.append("And the [decoding flags](#decoding-flags).\n")
        parts += [
            block(help_of(part, f"{name} {word}", part.params))
            for word, part in sorted(getattr(command, "commands", {}).items())
        ]
    return "\n".join([*parts, "## Decoding flags", block(decoding_flags()), codes()])


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page(), end="")
