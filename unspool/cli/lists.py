"""Flags that hold a list with commas: of numbers, or of known words."""

from __future__ import annotations

from typing import Any

import click


class Numbers(click.ParamType):  # type: ignore[type-arg]  # generic in later releases only
    """Whole numbers of 1 or more."""

    name = "N,N,..."

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(int(part) for part in value.split(","))
        except ValueError:
            numbers = ()
        if not numbers or min(numbers) < 1:
            self.fail(f"{value!r}: write whole numbers of 1 or more with commas", param, ctx)
        return tuple(dict.fromkeys(numbers))


class Words(click.ParamType):  # type: ignore[type-arg]
    """Some of the words in `known`; with `empty`, "none" is none of them."""

    name = "LIST"

    def __init__(self, known: tuple[str, ...], *, empty: bool = False) -> None:
        self.known, self.empty = known, empty

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        if self.empty and value == "none":
            return ()
        words = tuple(dict.fromkeys(value.split(",")))
        for word in words:
            if word not in self.known:
                none = ", or none of them: none" if self.empty else ""
                self.fail(f"{word!r}: there are {', '.join(self.known)}{none}", param, ctx)
        return words
