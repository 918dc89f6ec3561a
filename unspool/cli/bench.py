"""`unspool bench`: how fast this engine is here, and others beside it on the same file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unspool.bench.peers import PEERS
from unspool.cli.lists import Numbers, Words
from unspool.cli.verb import print_json, save_page

if TYPE_CHECKING:
    from unspool.bench.session import Session

NUMERICS, KV = ("default", "fast", "reference"), ("f32", "bf16", "int8")
LENGTHS = (128, 512, 2048)
Report = Mapping[str, Any]
Function = Callable[..., None]


@click.group("bench")
def command() -> None:
    """Measure speed, loading and caches, with other engines beside ours.

    Each engine has a process of its own, and only one works at a time, in interleaved rounds. Keep
    the machine quiet meanwhile. MODEL is a name, a folder or a .gguf file [default: smollm2].
    """


MODEL = click.argument("model", required=False)
PEERS_OPTION = click.option(
    "--peers",
    type=Words(tuple(PEERS), empty=True),
    default=",".join(PEERS),
    help=f"Which of {', '.join(PEERS)} to measure too, or none.  [default: all]",
)
PYTHON = click.option(
    "--peers-python",
    "python",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="The interpreter of the peers' environment.  [default: that of .venv-peers]",
)
OURS = click.option(
    "--numerics",
    type=Words(NUMERICS),
    default="default,fast",
    show_default=True,
    help="Which of ours to measure; the first is compared with the peers.",
)
ONE_OF_OURS = click.option(
    "--numerics",
    type=click.Choice(NUMERICS),
    default="default",
    show_default=True,
    metavar="NAME",
    help=f"Which of ours: {', '.join(NUMERICS)}.",
)
ONE_KV = click.option("--kv", type=click.Choice(KV), help="How ours keeps keys and values.")
SAMPLED = click.option(
    "--sampled", is_flag=True, help="Draw with temperature 0.8 and top-p 0.95, all engines."
)
PLOT = click.option("--plot", metavar="FILE.html", help="Write a chart too, as one page.")
THREADS = click.option(
    "--threads",
    type=click.IntRange(min=1),
    metavar="N",
    help="Threads of each engine.  [default: all cores]",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
QUIET = click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors on stderr.")


def rounds(count: int) -> Callable[[Function], Function]:
    return click.option(
        "--rounds",
        type=click.IntRange(min=1),
        default=count,
        show_default=True,
        metavar="N",
        help="How often each engine is measured.",
    )


def new_tokens(count: int) -> Callable[[Function], Function]:
    return click.option(
        "--tokens",
        "new",
        type=click.IntRange(min=2),
        default=count,
        show_default=True,
        metavar="N",
        help="How many tokens are written.",
    )


def options(*those: Callable[[Function], Function]) -> Callable[[Function], Function]:
    def add(function: Function) -> Function:
        for option in reversed(those):
            function = option(function)
        return function

    return add


SPEED = (PEERS_OPTION, PYTHON, OURS, ONE_KV, SAMPLED, THREADS, rounds(5), JSON, QUIET)


@command.command("decode", short_help="Tokens a second at batch 1.")
@options(MODEL, new_tokens(128))
@click.option(
    "--lengths",
    type=Numbers(),
    help="Measure after prompts of these lengths too.  [default with --plot: 128,512,2048]",
)
@options(PLOT, *SPEED)
def decode(new: int, lengths: tuple[int, ...] | None, plot: str | None, **asked: Any) -> None:
    """Measure writing at batch 1: the tokens after the first, by the time after the first.

    The greedy text is compared with the reference's, and the speed with what reading the weights
    once a token allows.
    """
    from unspool.bench.points import decode as measure

    more = lengths or (LENGTHS if plot else ())
    run(asked, lambda session: session.speed(measure(new, more)), plot)


@command.command("prefill", short_help="Tokens a second of reading a prompt.")
@options(MODEL)
@click.option(
    "--length",
    type=click.IntRange(min=1),
    default=512,
    show_default=True,
    metavar="N",
    help="Tokens of the prompt.",
)
@options(*SPEED)
def prefill(length: int, **asked: Any) -> None:
    """Measure reading a prompt at batch 1, up to its first token."""
    from unspool.bench.points import prefill as measure

    run(asked, lambda session: session.speed(measure(length)))


@command.command("batch", short_help="Tokens a second of several texts at once.")
@options(MODEL, new_tokens(64))
@click.option(
    "--sizes",
    type=Numbers(),
    default="1,2,4,8,16,32",
    show_default=True,
    help="How many texts at once; 16 is compared, else the most.",
)
@options(PLOT, *SPEED)
def batch(new: int, sizes: tuple[int, ...], plot: str | None, **asked: Any) -> None:
    """Measure writing several different texts at once: all their tokens, after the first of each.
    """
    from unspool.bench.points import batch as measure

    run(asked, lambda session: session.speed(measure(new, sizes)), plot)


@command.command("load", short_help="Seconds to load, and to the first token.")
@options(MODEL, PEERS_OPTION, PYTHON, OURS, THREADS, rounds(3), JSON, QUIET)
def load(**asked: Any) -> None:
    """Measure fresh processes: from their start until the model is loaded, and to the first token.

    Ours is also started as after its installation, with an empty cache of compiled code.
    """
    run(asked, lambda session: session.load())


@command.command("shape", short_help="Milliseconds to shape rows of logits and pick from them.")
@options(MODEL)
@click.option(
    "--peers",
    type=Words(("transformers",), empty=True),
    default="transformers",
    show_default=True,
    help="Measure transformers' processors too, or none.",
)
@options(PYTHON, rounds(5), JSON, QUIET)
def shape(**asked: Any) -> None:
    """Measure the rules on rows of the model's logits: one row with a repetition penalty,
    temperature, top-k, top-p and min-p, and 64 rows together, each with rules of its own."""
    run(asked, lambda session: session.shape())


@command.command("beam", short_help="Seconds of a beam search, and of as many samples.")
@options(MODEL, new_tokens(128))
@click.option(
    "--width",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    metavar="N",
    help="How many beams.",
)
@click.option(
    "--peers",
    type=Words(("transformers",), empty=True),
    default="transformers",
    show_default=True,
    help="Measure transformers too, or none.",
)
@options(PYTHON, OURS, ONE_KV, THREADS, rounds(5), JSON, QUIET)
def beam(width: int, new: int, **asked: Any) -> None:
    """Measure whole requests: one text by beam search, and as many texts as there are beams by
    sampling, which read as many rows a step."""
    run(asked, lambda session: session.beam(width, new))


@command.command("cache", short_help="What ours remembers: memory and time a token.")
@options(MODEL)
@click.option(
    "--lengths",
    type=Numbers(),
    default="128,512,2048",
    show_default=True,
    help="Tokens before those that are timed.",
)
@click.option(
    "--kv",
    type=Words(KV),
    default="f32",
    show_default=True,
    help="How keys and values are kept; each kind is a row.",
)
@options(ONE_OF_OURS, PLOT, THREADS, rounds(3), JSON, QUIET)
def cache(
    lengths: tuple[int, ...], kv: tuple[str, ...], numerics: str, plot: str | None, **asked: Any
) -> None:
    """Measure the caches of our own engine: bytes, and milliseconds a token, at several lengths."""
    asked["numerics"] = (numerics,)
    run(asked, lambda session: session.cache(lengths, kv), plot)


def run(
    asked: dict[str, Any], measure: Callable[[Session], dict[str, Any]], plot: str | None = None
) -> None:
    """Measure and print. Raises ClickException when our own engine could not be measured."""
    from unspool.bench.session import Plan, Session

    as_json, quiet = asked.pop("as_json"), asked.pop("quiet")
    if plot and not Path(plot).parent.is_dir():  # said before minutes are spent
        raise click.ClickException(f"{plot}: its folder is not there; name one that is")

    def say(text: str) -> None:
        if not quiet:
            click.echo(text, err=True)

    report = measure(Session(Plan(**asked), say))
    if plot:
        from unspool.bench.plot import page

        save_page(page(report), Path(plot))
        say(f"wrote {plot}")
    if as_json:
        print_json(report)
    else:
        from unspool.bench.table import print_report

        print_report(report, sys.stdout)
    if not report["ours"]:
        raise click.ClickException(f"ours could not be measured: {report['missing']}")
