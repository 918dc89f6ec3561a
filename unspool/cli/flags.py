"""The flags of decoding, one for each parameter of the table and for each of its other spellings.

Knows how a value is written on a command line; what it may be is the table's business, and which
spellings contradict each other too. Parameters that this version lacks have hidden flags, so that
they are refused by name and not as a typing error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click

from unspool.core.params import fields
from unspool.core.schedule import Schedule, read_number
from unspool.core.values import INT_MOST, Parameter, shown

DEST = "set_"  # keeps the parameters' names apart from the verbs' own
OWN = {"stream"}  # verbs say --no-stream
FUNCTIONS = {"prefix_allowed_tokens_fn", "logits_processor"}  # no line of text holds one


class Flag(click.Option):
    """An option that sets a decoding parameter; `section` is where help lists it."""

    def __init__(self, *args: Any, section: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.section = section


class Number(click.ParamType[Any]):
    """A number, or a schedule, which the table reads again: not every parameter may change."""

    def __init__(self, kind: click.ParamType[Any]) -> None:
        self.kind, self.name = kind, kind.name

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        found = read_number(value) if isinstance(value, str) else None
        return value if isinstance(found, Schedule) else self.kind.convert(value, param, ctx)


def decoding_flags(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the flags to a verb; its keyword arguments then hold what `chosen` reads."""
    for add in reversed([option for row in fields().values() for option in _options(row)]):
        function = add(function)
    return function


def chosen(arguments: dict[str, Any]) -> dict[str, Any]:
    """Takes the flags that were given out of a verb's arguments: spelling to value."""
    names = [name for name in arguments if name.startswith(DEST)]
    values = {name.removeprefix(DEST): arguments.pop(name) for name in names}
    rows = {spelling: row for row in fields().values() for spelling in _spellings(row)}
    return {
        name: _value(rows[name], name, value)
        for name, value in values.items()
        if value is not None and value != ()
    }


def read_as(name: str, text: str) -> Any:
    """A value as the flag of this parameter reads it."""
    return _value(fields()[name], name, text)


def _spellings(row: Parameter) -> tuple[str, ...]:
    return (row.name, *(alias.partition("*")[0] for alias in row.aliases))


def flag(name: str) -> str:
    """The flag of a spelling: "top_p" is "--top-p"."""
    return "--" + name.replace("_", "-")


def _options(row: Parameter) -> Iterator[Callable[..., Any]]:
    if row.name in OWN:
        return
    for name in _spellings(row):
        own = name == row.name
        names = [flag(name)]
        if row.type == "bool":
            names = [f"{flag(name)}/--no-{flag(name)[2:]}"]
        elif name == "n":
            names.append("-n")
        settings = _KINDS.get(row.type, _TEXT)
        yield click.option(
            *names,
            DEST + name,
            cls=Flag,
            section=row.group,
            default=None,
            hidden=not (own and row.built) or name in FUNCTIONS,
            help=_help(row),
            **settings,
        )


def _help(row: Parameter) -> str:
    also = [flag(name) for name in row.aliases if "*" not in name]
    facts = [f"also {', '.join(also)}"] if also else []
    if row.default not in (None, ""):
        facts.insert(0, f"default {row.default}")
    if row.type in ("int", "float", "bool | str"):
        facts.insert(0, str(row.range).removesuffix(str(INT_MOST)))
    if row.type == "tuple[str, ...]":
        facts.insert(0, "once for each")
    return f"{row.help} [{'; '.join(facts)}]" if facts else row.help


def _value(row: Parameter, name: str, value: Any) -> Any:
    if row.type == "tuple[int, ...]":
        return [_whole(name, part) for one in value for part in one.split(",")]
    if row.type == "bool | str":
        return {"true": True, "false": False}.get(value.lower(), value)
    if row.type in ("Repeats", "Any"):
        return _json(row, name, value)
    return list(value) if isinstance(value, tuple) else value


def _whole(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not a token id; write whole numbers with commas", param_hint=flag(name)
        ) from None


def _json(row: Parameter, name: str, text: str) -> Any:
    """JSON where it is JSON; a parameter that may be anything takes other text as it is, unless it
    begins as a list or an object does."""
    try:
        return json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        if row.type == "Any" and not (row.built and text.lstrip()[:1] in ("[", "{")):
            return text
        raise click.BadParameter(f"{shown(text)} is not JSON ({error}); quote it for the shell, "
                                 'as in \'["a", "b"]\'', param_hint=flag(name)) from None


def _once(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> str | None:
    """The one value of a flag whose values are not joined: the last would hide the others."""
    if len(values) > 1:
        raise click.BadParameter(f"given {len(values)} times; write all in one, as in "
                                 '\'["a", "b"]\'', param_hint=option.opts[0])
    return values[0] if values else None


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object that names nothing twice. Raises ValueError for one that does."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{shown(name)} stands there twice")
        found[name] = value
    return found


_TEXT: Mapping[str, Any] = {"type": str, "metavar": "TEXT"}
_KINDS: Mapping[str, Mapping[str, Any]] = {
    "int": {"type": Number(click.INT), "metavar": "N"},
    "float": {"type": Number(click.FLOAT), "metavar": "X"},
    "bool": {},
    "tuple[int, ...]": {"type": str, "multiple": True, "metavar": "ID,ID,..."},
    "tuple[str, ...]": {"type": str, "multiple": True, "metavar": "TEXT"},
    "Repeats": {"type": str, "metavar": "JSON", "multiple": True, "callback": _once},
    "Any": {"type": str, "metavar": "TEXT", "multiple": True, "callback": _once},
}
