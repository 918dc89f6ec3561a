"""Where a prompt comes from: the argument, -p, -f FILE, `-` or what is piped in.

Knows no model and no token. One line break at the very end of a file or a pipe is dropped: it is
the file's, not the prompt's, and it would change the next token.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click

from unspool.core.errors import PromptError

Prompt = str | list[dict[str, str]]
system_option = click.option(
    "-s", "--system", metavar="TEXT", help="A system message: the prompt is then a chat's."
)


def prompt_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds PROMPT, -p and -f to a verb, which hands all three to `read_prompt`."""
    for add in (
        click.option("-f", "--file", metavar="FILE", help="Read the prompt from a file."),
        click.option("-p", "--prompt", metavar="TEXT", help="The prompt, as an option."),
        click.argument("words", metavar="[PROMPT]", required=False),
    ):
        function = add(function)
    return function


def read_prompt(words: str | None, prompt: str | None, file: str | None) -> str:
    """The one prompt that was given; "-" and nothing at all mean the standard input.

    Raises UsageError for two prompts or, at a terminal, for none; PromptError for bytes that are
    not UTF-8 and for a file that cannot be read.
    """
    given = {"PROMPT": words, "-p": prompt, "-f": file}
    used = [name for name, value in given.items() if value is not None]
    if len(used) > 1:
        raise click.UsageError(f"{' and '.join(used)}: two prompts; give one of them")
    if file not in (None, "-"):
        return from_file(Path(file))
    text = words if prompt is None else prompt
    if text is not None and text != "-":
        return text
    if not used and sys.stdin.isatty():
        raise click.UsageError("no prompt: give one as an argument, with -f FILE, or in a pipe")
    return decoded(sys.stdin.buffer.read(), "the standard input")


def from_file(path: Path) -> str:
    """The text of a file less its last line break. PromptError: unreadable, or not UTF-8."""
    try:
        return decoded(path.read_bytes(), str(path))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise PromptError(f"{path}: cannot be read ({reason}); name a text file") from None


def decoded(raw: bytes, source: str) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise PromptError(
            f"{source}: byte {error.start} is not UTF-8; a prompt must be; convert it first"
        ) from None
    return text.removesuffix("\n").removesuffix("\r")


def with_system(prompt: str, system: str | None) -> Prompt:
    """The prompt as it is, or as a chat of two messages when there is a system message."""
    if system is None:
        return prompt
    return [{"role": "system", "content": system}, {"role": "user", "content": prompt}]
