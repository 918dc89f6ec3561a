"""`unspool run`: continue one prompt, as it is written or in one piece."""

from __future__ import annotations

import sys
from collections import deque
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from unspool.cli.flags import chosen, decoding_flags
from unspool.cli.prompt import Prompt, prompt_options, read_prompt, system_option, with_system
from unspool.cli.verb import Setup, Verb, checked, print_json, setup, setup_options, working
from unspool.cli.why import print_records
from unspool.show.text import TintedText, print_legend
from unspool.show.visible import harmless

if TYPE_CHECKING:
    from unspool.llm.handle import Handle
    from unspool.llm.llm import LLM
    from unspool.llm.results import Output, Token

INTERRUPTED = 130


@click.command("run", cls=Verb)
@prompt_options
@system_option
@click.option(
    "--show",
    type=click.Choice(["prob"]),
    metavar="prob",
    help="Tint each token by its probability.",
)
@click.option("--no-stream", is_flag=True, help="Print the text when it is whole.")
@setup_options
@decoding_flags
@click.pass_context
def command(ctx: click.Context, /, **arguments: Any) -> None:
    """Continue PROMPT and print what is written.

    The prompt is an argument, -p TEXT, -f FILE or what is piped in (`-`). It is continued as it
    stands; with -s it is a user's message in a chat. Ctrl-C prints what there is.
    """
    options, params = setup(arguments), chosen(arguments)
    several = checked(params).n not in (None, 1)
    words = read_prompt(arguments["words"], arguments["prompt"], arguments["file"])
    prompt = with_system(words, arguments["system"])
    if arguments["show"] and not options.quiet:
        print_legend(sys.stderr)
    with options.model() as lm:
        writer = Writer(tint=bool(arguments["show"]))
        if isinstance(prompt, str) and sys.stdout.isatty() and not options.quiet:
            writer.opening = prompt
        whole = options.json or arguments["no_stream"] or several
        output, interrupted = write(lm, prompt, params, options, None if whole else writer)
        if options.json:
            print_json(output.to_json())
        elif whole or len(output) > 1:
            print_choices(output, writer, options, begun=not whole)
        if not options.json:
            print_records(output, options)
        report(output, options)
    if interrupted:
        ctx.exit(INTERRUPTED)


def write(
    lm: LLM, prompt: Prompt, params: dict[str, Any], options: Setup, writer: Writer | None
) -> tuple[Output, bool]:
    """Run one request, streaming to `writer` if there is one; Ctrl-C keeps what was written.

    Raises what ended the request, if something went wrong.
    """
    handle = lm.submit(prompt, **params)
    interrupted = False
    try:
        if writer is None:
            with working("writing", options.quiet):
                output = handle.result()
        else:
            output = stream(handle, writer, options)
    except KeyboardInterrupt:
        interrupted = True
        handle.cancel()
        output = handle.result()
    if writer is not None:
        writer.finish(output.text if len(output) else "")
    return output, interrupted


def stream(handle: Handle, writer: Writer, options: Setup) -> Output:
    commits = (event for event in handle if event.type == "commit" and event.choice == 0)
    with working("reading the prompt", options.quiet):
        first = next(commits, None)
    for event in (() if first is None else chain([first], commits)):
        writer.add(event.text, event.tokens)
    return handle.result()


class Writer:
    """Prints one text as it grows; with `tint`, every part in the colour of its token.

    `opening` goes to stderr before the text: at a terminal the prompt and its continuation read
    as one.
    """

    def __init__(self, tint: bool = False) -> None:
        self.out = TintedText(sys.stdout)
        self.tint = tint
        self.opening = ""
        self.written = ""
        self.waiting: deque[tuple[str, float]] = deque()  # tokens whose text is still held back

    def add(self, text: str, tokens: tuple[Token, ...]) -> None:
        """Print `text`; `tokens` are those settled since the last call, shown or still held."""
        self.written += text
        if text and self.opening:
            click.echo(harmless(self.opening), nl=False, err=True)
            self.opening = ""
        if not self.tint:
            self.out.write(text, None)
            return
        self.waiting += [(str(t.bytes, "utf-8", "replace"), t.prob) for t in tokens]
        while text:
            piece, prob = self._part(text)
            self.out.write(piece, prob)
            text = text[len(piece) :]

    def _part(self, text: str) -> tuple[str, float | None]:
        """The next part of `text` that is one token's, and its probability."""
        while self.waiting:
            piece, prob = self.waiting.popleft()
            if piece and text.startswith(piece):
                return piece, prob
            if piece.startswith(text):
                self.waiting.appendleft((piece[len(text) :], prob))
                return text, prob
            if piece:  # tokens that share a character: their border is in no text
                self.waiting.clear()
                return text, prob
        return text, None

    def finish(self, text: str) -> None:
        """Print what of the final `text` is missing, and a line break."""
        self.add(text[len(self.written) :], ())
        self.out.write("\n", None)


def print_choices(output: Output, writer: Writer, options: Setup, begun: bool) -> None:
    """Each choice on stdout, best first, with its number on stderr when there are several. `begun`:
    the first one stands there already."""
    for number, choice in list(enumerate(output, 1))[begun:]:
        if len(output) > 1:
            options.say(f"--- {number} of {len(output)}, log-probability {choice.logprob:.2f}")
        writer.written = ""
        writer.add(choice.text, choice.tokens)
        writer.finish(choice.text)


def report(output: Output, options: Setup) -> None:
    """What was not as asked, and with -v what it took."""
    options.notes(output.notes)
    if options.verbose:
        usage = ", ".join(f"{name} {count}" for name, count in output.usage.json().items() if count)
        reason = f"{output.finish_reason} ({output.stop_reason})"
        options.say(f"{reason}; {usage}; numerics {output.numerics}; seed {output.seed}")
