"""The flags of loading are the keywords of `load`, and only those that were given reach it."""

from inspect import signature

import click
import pytest
from click.testing import CliRunner

from unspool.cli.verb import LOADING, Verb, setup, setup_options
from unspool.llm.load import load

seen = []


@click.command(cls=Verb)
@setup_options
def verb(**arguments):
    seen.append(setup(arguments))
    assert arguments == {}


def asked(*args):
    CliRunner().invoke(verb, args, catch_exceptions=False)
    return seen.pop()


def test_every_choice_of_loading_but_objects_is_a_flag():
    assert {*LOADING, "model", "dtype", "tokenizer"} == set(signature(load).parameters)


def test_what_was_not_given_is_left_to_load():
    assert asked().load == {}


@pytest.mark.parametrize("name", LOADING)
def test_what_was_given_reaches_load(name):
    assert asked(f"--{name}", "3").load == {name: 3 if name == "threads" else "3"}
