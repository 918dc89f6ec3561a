"""The command line: one file for each verb, found by its name when it is used."""

from unspool.cli.app import main

__all__ = ["main"]
