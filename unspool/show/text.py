"""Text tinted by how probable each token was: the likely ones plain, the surprising ones dark.

Knows pairs of text and probability, nothing of tokens or models. The tints go from pale to dark in
one order of lightness, so that they can be told apart without seeing colour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from unspool.show.visible import harmless

if TYPE_CHECKING:
    from rich.console import Console

# From this probability on, this style; the last one is for all that is below.
TINTS = (
    (0.70, ""),
    (0.30, "black on #fde3a0"),
    (0.10, "black on #f89540"),
    (0.01, "white on #b5367a"),
    (0.00, "white on #3b0f70"),
)


def tint_of(prob: float) -> str:
    """The rich style of a token of probability `prob` (0..1); "" is plain."""
    return next((style for least, style in TINTS if prob >= least), TINTS[-1][1])


class TintedText:
    """Writes pieces of text as they come: tinted on a terminal, plain elsewhere and by NO_COLOR."""

    def __init__(self, file: TextIO) -> None:
        self.console = plain_console(file)

    @property
    def tinted(self) -> bool:
        return self.console.color_system is not None and not self.console.no_color

    def write(self, text: str, prob: float | None) -> None:
        """Write `text`; `prob` None (not known) is plain."""
        from rich.text import Text

        style = "" if prob is None else tint_of(prob)
        shown = harmless(text) if self.console.is_terminal else text
        if self.tinted and style:
            self.console.print(Text(shown, style=style), end="", soft_wrap=True)
        else:
            self.console.file.write(shown)
        self.console.file.flush()


def print_legend(file: TextIO) -> None:
    """Print what each tint means, on one line; nothing where there are no tints."""
    from rich.text import Text

    console = plain_console(file)
    if console.color_system is None or console.no_color:
        return
    line = Text("probability: ")
    below = 1.0
    for least, style in TINTS:
        label = f"{least:.0%} to {below:.0%}" if least else f"below {below:.0%}"
        line.append(f" {label} ", style=style).append(" ")
        below = least
    console.print(line, soft_wrap=True)


def plain_console(file: TextIO) -> Console:
    """A rich console that adds nothing of its own: no markup, emoji codes, or highlighting."""
    from rich.console import Console

    return Console(file=file, highlight=False, markup=False, emoji=False)
