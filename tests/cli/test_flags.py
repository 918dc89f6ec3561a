import json
import warnings

import click
import pytest
from click.testing import CliRunner

from unspool.cli.flags import FUNCTIONS, Flag, chosen, decoding_flags, flag
from unspool.cli.run import command as run
from unspool.cli.verb import Verb
from unspool.core.errors import ParameterError
from unspool.core.params import Params, fields, spellings

BUILT = [row for row in fields().values() if row.built]
UNBUILT = [
    row
    for row in fields().values()
    if not row.built and row.name != "stream" and not {"True", "False"} <= {*map(repr, row.neutral)}
]


@click.command(cls=Verb)
@decoding_flags
def echo(**arguments):
    click.echo(json.dumps(chosen(arguments)))


def given(*args: str) -> dict:
    ran = CliRunner().invoke(echo, args, catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.stdout)


def value_for(row) -> str:
    """A value, as typed, that is not neutral."""
    kinds = {
        "int": lambda: str(int(min(row.range.low + 3, row.range.high))),
        "float": lambda: str(row.range.low + 0.5),
        "str": lambda: row.range.words[-1] if row.range.words else "abc",
        "bool | str": lambda: row.range.words[0].lower(),
        "tuple[int, ...]": lambda: "3,5",
        "tuple[str, ...]": lambda: "abc",
        "Repeats": lambda: '{"max_pattern_size": 4}',
        "str | Strategy": lambda: "greedy",
    }
    return kinds.get(row.type, lambda: '{"a": 1}')()


def flag_and_value(row, name: str) -> list[str]:
    if row.type == "bool":
        return [("--no-" + flag(name)[2:]) if row.default else flag(name)]
    return [flag(name), value_for(row)]


@pytest.mark.parametrize("name", [name for name in spellings() if name != "stream"])
def test_every_spelling_is_a_flag_and_keeps_its_name(name):
    row = spellings()[name][0]
    assert list(given(*flag_and_value(row, name))) == [name]


@pytest.mark.parametrize("row", BUILT, ids=lambda row: row.name)
def test_a_flag_of_this_version_is_accepted_by_the_table(row):
    asked = given(*flag_and_value(row, row.name))
    assert list(Params.of(asked | {"add_generation_prompt": False}).given())


@pytest.mark.parametrize("row", UNBUILT, ids=lambda row: row.name)
def test_a_flag_of_a_later_version_is_hidden_and_refused_by_name(row):
    asked = given(*flag_and_value(row, row.name))
    with pytest.raises(ParameterError, match=f"^{row.name}=.*not in this version"):
        Params.of(asked)
    help_text = CliRunner().invoke(echo, ["--help"]).stdout
    assert f"{flag(row.name)} " not in help_text


def test_help_lists_every_flag_of_this_version_under_its_group():
    ran = CliRunner().invoke(echo, ["--help"])
    for row in BUILT:
        assert (flag(row.name) in ran.stdout) == (row.name not in FUNCTIONS)
        assert f"{row.group.capitalize()}:" in ran.stdout


def test_values_are_read_as_they_are_written():
    assert given("--temperature", ".8", "--top-k", "40", "--do-sample") == {
        "temperature": 0.8,
        "top_k": 40,
        "do_sample": True,
    }
    assert given("--stop", "a,b", "--stop", "\n") == {"stop": ["a,b", "\n"]}
    assert given("--eos-token-id", "1,2", "--eos-token-id", "3") == {"eos_token_id": [1, 2, 3]}
    assert given("--early-stopping", "TRUE") == {"early_stopping": True}
    assert given("--early-stopping", "never") == {"early_stopping": "never"}
    assert given("--logit-bias", '{"5": -100}') == {"logit_bias": {"5": -100}}
    assert given("--grammar", "root ::= x") == {"grammar": "root ::= x"}
    assert given("--regex", "[a-z]+") == {"regex": "[a-z]+"}
    assert given("--bad-words", '["a", [5]]') == {"bad_words": ["a", [5]]}
    assert given("--bad-words", "no") == {"bad_words": "no"}
    assert given("--order", "hf") == {"order": "hf"}
    assert given("--order", "top_k,temp") == {"order": "top_k,temp"}
    assert given("--samplers", '["top_k"]') == {"samplers": ["top_k"]}
    assert given("--watermark", '{"kind": "kgw"}') == {"watermark": {"kind": "kgw"}}
    assert given("--exponential-decay-length-penalty", "[5, 1.2]") == {
        "exponential_decay_length_penalty": [5, 1.2]}
    assert given("-n", "3") == {"n": 3}
    assert given("--no-do-sample", "--temperature", "0") == {"temperature": 0, "do_sample": False}
    assert given() == {}


def test_both_spellings_reach_the_table_which_refuses_a_disagreement():
    asked = given("--max-tokens", "5", "--max-new-tokens", "6")
    with pytest.raises(ParameterError, match="two spellings"):
        Params.of(asked)


@pytest.mark.parametrize(
    "args",
    [
        ("--top-k", "many"),
        ("--temperature", "hot"),
        ("--stop-token-ids", "1,x"),
        ("--repetition-detection", "often"),
        ("--repetition-detection", "[" * 100_000),
        ("--logit-bias", "{5: -100}"),
        ("--bad-words", '["a"'),
        ("--choice", " [a, b]"),
        ("--order", "[" * 100_000),
        ("--temprature", "1"),
    ],
)
def test_a_value_that_cannot_be_read_is_wrong_usage(args):
    ran = CliRunner().invoke(echo, args)
    assert ran.exit_code == 2 and args[0] in ran.stderr


def test_no_flag_is_defined_twice():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        names = [name for option in run.params for name in (*option.opts, *option.secondary_opts)]
    assert len(names) == len(set(names))
    assert any(isinstance(option, Flag) for option in run.params)


@pytest.mark.parametrize("name", ["bad-words", "choice", "logit-bias", "order"])
def test_a_value_that_would_hide_another_is_refused(name):
    ran = CliRunner().invoke(echo, [f"--{name}", '["a"]', f"--{name}", '["b"]'])
    assert ran.exit_code == 2 and f"--{name}: given 2 times; write all in one" in ran.output


def test_an_object_names_nothing_twice():
    """JSON would let the last one win."""
    args = ["x", "--logit-bias", '{"5": 1, "5": 3}']
    ran = CliRunner().invoke(run, args)
    assert ran.exit_code == 2 and "'5' stands there twice" in ran.output


@pytest.mark.parametrize(("args", "given_"), [
    (("--temperature", "1.2..0.5/40"), {"temperature": "1.2..0.5/40"}),
    (("--num-beams", "5!2/10"), {"num_beams": "5!2/10"}),
    (("--guidance-scale", "3..1/20"), {"guidance_scale": "3..1/20"}),
    (("--must-contain", '["rain", ["sun", "sunny"]]'),
     {"must_contain": ["rain", ["sun", "sunny"]]}),
    (("--must-contain", "rain"), {"must_contain": "rain"}),
    (("--boosts", '{" sea": 2}'), {"boosts": {" sea": 2}}),
    (("--amateur-model", "/a/path"), {"amateur_model": "/a/path"}),
    (("--ensemble", '["a", "b"]'), {"ensemble": ["a", "b"]}),
    (("--negative-prompt", "not this"), {"negative_prompt": "not this"}),
    (("--dola-layers", "low"), {"dola_layers": "low"}),
    (("--dola-layers", "[2, 4]"), {"dola_layers": [2, 4]}),
    (("--answer", "(\\d+)$"), {"answer": "(\\d+)$"}),
    (("--force-words-ids", "[[5, 6]]"), {"force_words_ids": [[5, 6]]}),
    (("--strategy", "beam:5@20 >> sample:t=.8"), {"strategy": "beam:5@20 >> sample:t=.8"}),
], ids=str)  # fmt: skip
def test_searches_and_other_readers_are_read_as_they_are_written(args, given_):
    found = given(*args)
    assert found == given_ and Params.of(found).given()


@pytest.mark.parametrize("text", ["1..2", "1..2/x", "1,5", "fast", "1!2"])
@pytest.mark.parametrize("name", ["temperature", "top-k"])
def test_what_is_neither_a_number_nor_a_schedule_is_wrong_usage(name, text):
    ran = CliRunner().invoke(echo, [f"--{name}", text])
    assert ran.exit_code == 2 and f"--{name}" in ran.stderr
