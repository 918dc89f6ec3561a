"""`unspool models`: what is known by name, where it is, and how to bring it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from unspool.cli.verb import print_json
from unspool.show.progress import Progress


@click.group("models")
def command() -> None:
    """List the models known by name, fetch one."""


@command.command("ls")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def ls(as_json: bool) -> None:
    """List the models known by name."""
    from unspool.files.store import DEFAULT, models

    rows: list[dict[str, Any]] = [
        {
            "name": known.name,
            "title": known.title,
            "license": known.license,
            "bytes": known.size,
            "default": known.name == DEFAULT,
            "path": str(path) if path else None,
        }
        for known, path in models()
    ]
    if as_json:
        print_json({"models": rows})
        return
    for row in rows:
        place = row["path"] or f"not here: unspool models fetch {row['name']}"
        size = f"{row['bytes'] / 1e6:.0f} MB"
        click.echo(f"{row['name']:<12} {row['title']}  {size}  {row['license']}  {place}")


@command.command("fetch", short_help="Bring a model here.")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors on stderr.")
def fetch(name: str, as_json: bool, quiet: bool) -> None:
    """Bring the model NAME to this machine, unless it is here; print where it is."""
    from unspool.files.store import fetch as bring

    with Progress(f"fetching {name}", sys.stderr, quiet=quiet):
        path: Path = bring(name)
    if as_json:
        print_json({"name": name, "path": str(path)})
    else:
        click.echo(str(path))
