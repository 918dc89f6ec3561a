import os
import subprocess
import sys

import click
import pytest

import unspool
from unspool.cli import app
from unspool.cli.app import VERBS, cli, exit_code, main
from unspool.core.errors import (
    FormatError,
    ModelError,
    ParameterError,
    PromptError,
    RowError,
    TemplateError,
)


def code(*args: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(args)
    return stop.value.code


@pytest.fixture
def verb(monkeypatch):
    """Puts a verb of the test's own in the place of `env`."""

    def put(function):
        command = click.command("env")(function)
        monkeypatch.setattr(
            app, "import_module", lambda name: type("module", (), {"command": command})
        )

    return put


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ParameterError("x"), 2),
        (PromptError("x"), 2),
        (ModelError("x"), 4),
        (FormatError("x"), 4),
        (TemplateError("x"), 4),
        (MemoryError(), 5),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried ..."), 5),
        (RuntimeError("CUDA out of memory. Tried to allocate ..."), 5),
        (RowError("x"), 1),
        (ZeroDivisionError("x"), 1),
    ],
)
def test_an_error_has_one_code_and_one_line(error, expected, verb, capsys):
    @verb
    def failing():
        raise error

    assert exit_code(error) == expected
    assert code("env") == expected
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("Error: ") and err.count("\n") == 1


def test_verbose_shows_where_a_fault_is(verb, capsys):
    @verb
    @click.option("-v", is_flag=True)
    def failing(v):
        raise ZeroDivisionError("x")

    assert code("env", "-v") == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_is_130(verb):
    @verb
    def interrupted():
        raise KeyboardInterrupt

    assert code("env") == 130


def test_every_verb_has_a_command_and_a_line_of_help(capsys):
    assert code("--help") == 0
    listed = capsys.readouterr().out
    for name, line in VERBS.items():
        command = cli.get_command(click.Context(cli), name)
        assert command.name == name and command.help
        assert f"{name} " in listed and line in listed


def test_what_is_no_verb_is_a_prompt(monkeypatch):
    seen = []
    monkeypatch.setattr(click.Group, "parse_args", lambda self, ctx, args: seen.append(args) or [])
    for args in (["The sky"], ["-m", "x", "hi"], ["next", "hi"], ["--version"], ["hi", "-q"]):
        cli.parse_args(click.Context(cli), list(args))
    assert seen == [
        ["run", "The sky"],
        ["run", "-m", "x", "hi"],
        ["next", "hi"],
        ["--version"],
        ["run", "hi", "-q"],
    ]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("serve",), "serve: not in this version"),
        (("verify", "smollm2", "--json"), "verify: not in this version"),
        (("nxt", "The sky"), "did you mean next?"),
        (("The", "color", "of", "sky"), "a prompt of several words needs quotes"),
    ],
)
def test_a_verb_that_is_not_there_is_refused_and_not_continued(args, words, capsys):
    assert code(*args) == 2
    assert words in capsys.readouterr().err


def test_wrong_usage_is_2_and_says_so(capsys):
    assert code("run", "a", "b") == 2
    assert code("run", "a", "--temprature", "1") == 2
    assert "--temperature" in capsys.readouterr().err  # the nearest flag
    assert code("run", "a", "--temperature", "nan") == 2
    assert "temperature=nan" in capsys.readouterr().err
    assert code("run", "a", "--assistant-early-exit", "3") == 2
    assert "not in this version" in capsys.readouterr().err


def test_version(capsys):
    assert code("--version") == 0
    assert capsys.readouterr().out == f"unspool {unspool.__version__}\n"


def test_a_reader_that_goes_away_is_no_news():
    program = [sys.executable, "-c", "from unspool.cli import main; main(['run', '--help'])"]
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run(program, stdout=write, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(write)
    assert ran.stderr == ""


def test_no_arguments_at_a_pipe_is_a_prompt_from_it():
    program = [sys.executable, "-c", "from unspool.cli import main; main([])"]
    ran = subprocess.run(program, input=b"\xff", capture_output=True, timeout=60)
    assert ran.returncode == 2 and b"standard input: byte 0 is not UTF-8" in ran.stderr


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "unspool", "--version"], capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 0 and unspool.__version__ in done.stdout
