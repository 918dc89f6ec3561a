import io
import json
import re
import signal

import pytest

SKY = "The color of sky is"
KEYS = [
    "prompt", "model", "numerics", "text", "token_ids", "finish_reason", "stop_reason", "logprob",
    "score", "usage", "params", "notes",
]  # fmt: skip
ENDLESS = ("run", SKY, "--ignore-eos", "--max-new-tokens", "1500")

pytestmark = pytest.mark.usefixtures("weights")


def test_json_has_the_fields_that_others_rely_on(unspool):
    result = unspool("run", SKY, "--max-new-tokens", "5", "--json").json
    assert [key for key in result if key in KEYS] == KEYS
    assert result["prompt"] == SKY and result["finish_reason"] == "length"
    assert len(result["token_ids"]) == 5 and result["usage"]["completion"] == 5
    assert result["params"]["max_new_tokens"] == 5


def test_streamed_whole_and_tinted_text_are_the_text_of_the_result(unspool):
    asked = ("run", SKY, "--max-new-tokens", "12", "--seed", "3", "--temperature", "1")
    text = unspool(*asked, "--json").json["text"]
    assert unspool(*asked).out == text + "\n"
    assert unspool(*asked, "--no-stream").out == text + "\n"
    assert unspool(*asked, "--show", "prob").out == text + "\n"
    assert unspool(*asked[1:]).out == text + "\n"  # `run` is the default verb


def test_colours_on_a_terminal_add_nothing_but_colour(unspool, monkeypatch):
    asked = ("run", SKY, "--max-new-tokens", "12", "--show", "prob")
    text = unspool(*asked).out
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    ran = unspool(*asked)
    assert "\x1b[" in ran.out and "probability:" in ran.err
    assert re.sub(r"\x1b\[[0-9;]*m", "", ran.out) == text


def test_several_choices(unspool):
    asked = ("run", SKY, "-n", "3", "--do-sample", "--seed", "1", "--max-new-tokens", "6")
    choices = unspool(*asked, "--json").json["choices"]
    assert len(choices) == 3
    ran = unspool(*asked)
    assert ran.out == "".join(choice["text"] + "\n" for choice in choices)
    assert "--- 3 of 3" in ran.err


def test_beam_search_streams_to_its_own_result(unspool):
    asked = ("run", SKY, "--num-beams", "3", "--max-new-tokens", "8")
    assert unspool(*asked).out == unspool(*asked, "--json").json["text"] + "\n"


def test_a_stop_string_ends_the_text_and_is_not_in_it(unspool):
    text = unspool("run", SKY, "--max-new-tokens", "20", "--json").json["text"]
    stop = text[4:7]
    result = unspool("run", SKY, "--max-new-tokens", "20", "--stop", stop, "--json").json
    assert result["text"] == text[: text.index(stop)]
    assert (result["finish_reason"], result["stop_reason"]) == ("stop", stop)


def test_a_system_message_makes_it_a_chat(unspool):
    said = unspool("run", "-s", "Answer in one word.", "Hello!", "--max-new-tokens", "8", "--json")
    assert [message["role"] for message in said.json["prompt"]] == ["system", "user"]


def test_a_prompt_is_piped_in(unspool, monkeypatch):
    asked = ("--max-new-tokens", "4", "--json")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(SKY.encode() + b"\n")))
    piped, given = unspool("run", "-", *asked).json, unspool("run", SKY, *asked).json
    assert (piped["prompt"], piped["text"]) == (SKY, given["text"])


def test_why_adds_a_table_with_a_line_for_each_token(unspool):
    asked = ("run", SKY, "--max-new-tokens", "4", "--seed", "3", "--temperature", "1", "--top-k",
             "30", "--top-p", "0.8")  # fmt: skip
    plain, ran = unspool(*asked), unspool(*asked, "--why")
    assert ran.out.startswith(plain.out + "\n") and "the probability it removed" in ran.err
    head, *lines = ran.out.removeprefix(plain.out + "\n").splitlines()
    assert head.split()[:6] == ["token", "model", "final", "rank", "top_k(30)", "top_p(0.8)"]
    told = unspool(*asked, "--why", "--json").json["tokens"]
    assert len(lines) == len(told) == 4
    for line, token in zip(lines, told, strict=True):
        cut, nucleus = token["why"]["stages"]
        assert [f"{100 * stage['mass']:.3g}" for stage in (cut, nucleus)] == line.split()[8:11:2]
        assert f"{token['why']['rank']} -> {token['why']['processed_rank']}" in line
        assert f"{token['why']['runner_up']['behind']:.3f}" == line.split()[-1]


def test_why_of_several_choices(unspool):
    ran = unspool("run", SKY, "-n", "2", "--do-sample", "--seed", "1", "--max-new-tokens", "2",
                  "--why")  # fmt: skip
    assert ran.out.count("model") == 2 and ran.err.count("--- 2 of 2") == 2


def test_verbose_tells_what_it_took_and_quiet_nothing(unspool):
    asked = ("run", SKY, "--max-new-tokens", "3")
    assert "numerics default" in unspool(*asked, "-v").err
    assert unspool(*asked, "-q").err == ""


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("run", "hi", "-m", "no/such-model-here"), 4, "no/such-model-here"),
        (("run", "hi", "-m", "nosuchmodel"), 4, "nosuchmodel"),
        (("run", "sky " * 9000), 2, "context"),
        (("run", SKY, "--max-new-tokens", "9000"), 2, "9000"),
        (("run", SKY, "--numerics", "exact"), 2, "exact"),
        (("run", SKY, "--numerics", "reference", "--threads", "2"), 2, "threads=2"),
        (("run", SKY, "--kv", "f16"), 2, "kv='f16'"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(unspool, args, code, words):
    ran = unspool(*args, code=code)
    assert ran.out == "" and words in ran.err
    assert ran.err.splitlines()[-1].startswith("Error: ")


@pytest.mark.parametrize("extra", [(), ("--json",), ("--no-stream",)])
def test_an_interrupt_prints_what_was_written_and_is_130(started, extra):
    process = started(*ENDLESS, *extra)
    first = process.stdout.read(1) if not extra else b""
    if extra:  # nothing shows until the end: the line on stderr says that it writes
        while process.stderr.readline().strip() not in (b"writing ...", b""):
            pass
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert b"Traceback" not in err
    if extra == ("--json",):
        result = json.loads(out)
        assert result["finish_reason"] == "cancelled"
    else:
        assert len(first + out) > 1


def test_a_reader_that_goes_away_ends_it_silently(started):
    process = started(*ENDLESS)
    process.stdout.read(1)
    process.stdout.close()
    assert process.wait(timeout=120) == 1
    assert process.stderr.read().strip() in (b"", b"loading the default model ...")


@pytest.mark.parametrize("asked", [
    ("--strategy", "beam:3@4 >> sample:t=.8,top_p=.95"), ("--strategy", "sample@3 >> beam:2"),
    ("--strategy", "contrastive"), ("--strategy", "mbr:3"), ("--must-contain", '["rain"]'),
    ("--boosts", '{" sea": 3}'), ("--guidance-scale", "1.5", "--negative-prompt", "I like"),
    ("--temperature", "1.5..0.5/6"), ("--num-beams", "4..1/6"), ("--amateur-model", "smollm2"),
    ("--answer", "number", "--best-of", "3"),
], ids=str)  # fmt: skip
def test_what_is_streamed_is_the_text_of_the_result(unspool, asked):
    asked = ("run", SKY, "--seed", "1", "--max-new-tokens", "8", *asked)
    result = unspool(*asked, "--json").json
    assert unspool(*asked).out == result["text"] + "\n"
    plain = unspool(*asked[:6], "--json").json
    assert result["token_ids"] != plain["token_ids"] or result["logprob"] != plain["logprob"]


@pytest.mark.parametrize("strategy", ["beam:3,n=2", "stochastic_beam:2", "beam:3@4 >> sample:n=2"])
def test_a_search_with_several_answers_prints_all_of_them(unspool, strategy):
    asked = ("run", SKY, "--seed", "1", "--max-new-tokens", "6", "--strategy", strategy)
    choices = unspool(*asked, "--json").json["choices"]
    ran = unspool(*asked)
    assert ran.out == "".join(choice["text"] + "\n" for choice in choices) and len(choices) == 2
    assert "--- 2 of 2" in ran.err


@pytest.mark.parametrize(("args", "said"), [
    (("--strategy", "beam:0"), "num_beams=0"), (("--strategy", "beam >> sample"), "never ends"),
    (("--strategy", "beem"), "did you mean beam?"), (("--num-beams", "-1"), "num_beams=-1"),
    (("--max-new-tokens", "5..1/8"), "max_new_tokens="), (("--top-p", "0.5..2/9"), "top_p="),
    (("--best-of", "0"), "best_of=0"),
])
def test_what_cannot_work_is_said_before_a_model_is_loaded(unspool, monkeypatch, args, said):
    monkeypatch.setattr("unspool.load", None)
    ran = unspool("run", SKY, *args, code=2)
    assert said in ran.err and "loading" not in ran.err and ran.out == ""


@pytest.mark.parametrize(("args", "said"), [
    (("--must-contain", "[]"), "must_contain=[]"), (("--reward", "logprob"), "no use for it"),
    (("--negative-prompt", "x"), "belongs to guidance_scale"),
    (("--amateur-model", "/no/such/model"), "amateur_model='/no/such/model'"),
    (("--must-contain", '["rain"]', "--bad-words", '["rain"]'), "bad_words forbid its tokens"),
    (("--must-contain", '["rain", "snow"]', "--max-new-tokens", "1"), "at most 1 may be written"),
    (("--num-beams", "1024", "--max-new-tokens", "8000"), "bytes and"),
])
def test_a_refusal_names_the_parameter(unspool, args, said):
    ran = unspool("run", SKY, *args, code=2)
    assert said in ran.err and ran.out == "" and "Traceback" not in ran.err
