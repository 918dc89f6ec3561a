"""Every form of prompt and batch, streams, n and beams, stops, seeds, memory, refusals."""

import gc
import itertools
import json
import math
import os
import signal
import threading
import weakref

import models_zoo as zoo
import numpy as np
import pytest
import torch

import unspool
from unspool.core.errors import ParameterError, PromptError, RowError, UnspoolError
from unspool.strategies import Force

HI = {"role": "user", "content": "ab"}
NAN = float("nan")


def ids_of(output):
    return [choice.token_ids for choice in output]


def facts_of(output):
    """All that a neighbour could have changed, bit for bit."""
    return [
        (c.text, [(t.id, t.logprob, t.processed_logprob, t.rank, t.top) for t in c.tokens], c.score)
        for c in output
    ]


# ------------------------------------------------------------------------------------- prompts
@pytest.mark.parametrize(
    "prompt",
    ["ab", [0, 1], (0, 1), np.array([0, 1]), torch.tensor([0, 1]), {"prompt": "ab"},
     {"prompt": [0, 1]}, unspool.Request("ab"), unspool.Request([0, 1])],
    ids=lambda p: type(p).__name__,
)  # fmt: skip
def test_every_form_of_one_prompt(cy, prompt):
    output = cy.generate(prompt, max_new_tokens=3)
    assert (output.text, output.token_ids, output.usage.prompt) == ("cde", [2, 3, 4], 2)
    assert cy.submit(prompt, max_new_tokens=3).result().text == "cde"
    assert "".join(e.text for e in cy.stream(prompt, max_new_tokens=3)) == "cde"
    assert [s.token for s in cy.steps(prompt, max_new_tokens=3)] == list("cde")
    assert cy.next(prompt).top(1)[0].text == "c"


def test_chats(make, kit):
    words = kit.letters(26, "<>/", chat_template=kit.chat)
    lm = make(zoo.markov(zoo.cycle(29)), words)
    rendered = "<user>ab</><assistant>"
    for prompt in (HI, [HI], {"messages": [HI]}, unspool.Request([HI])):
        output = lm.generate(prompt, max_new_tokens=2)
        assert output.usage.prompt == len(rendered) and output.text == "/a"
    outputs = lm.generate([[HI], HI and [HI, HI]], max_new_tokens=2)
    assert [o.usage.prompt for o in outputs] == [22, 33]
    go_on = lm.generate([HI], max_new_tokens=2, continue_final_message=True)
    assert (go_on.text, go_on.usage.prompt) == ("cd", len("<user>ab"))
    with pytest.raises(PromptError, match="messages\\[0\\] has role 'x'"):
        lm.generate([{"role": "x", "content": "a"}])
    with pytest.raises(PromptError, match="the prompt is empty"):
        lm.generate({"messages": []})


def test_a_batch_of_every_form_in_request_order(make, kit):
    words = kit.letters(26, "<>/", chat_template=kit.chat)
    lm = make(zoo.markov(zoo.cycle(29)), words)
    batch = [
        "a",
        [3, 4],
        unspool.Request("c", max_new_tokens=5),
        {"prompt": "d", "seed": 9},
        {"messages": [HI], "max_new_tokens": 1},
        [HI],
    ]
    outputs = lm.generate(batch, max_new_tokens=2)
    assert [o.text for o in outputs] == ["bc", "fg", "defgh", "ef", "/", "/a"]
    assert outputs[3].seed == 9 and all(o.error is None for o in outputs)
    assert [o.prompt for o in outputs] == ["a", [3, 4], "c", "d", [HI], [HI]]


def test_an_empty_batch(cy):
    for empty in ([], ()):
        assert cy.generate(empty) == [] == cy.next(empty) == cy.score(empty)
        assert list(cy.stream(empty)) == []
    for call in (cy.submit, cy.steps):
        with pytest.raises(PromptError, match="a list of 0 prompts where one is asked for"):
            call([])


@pytest.mark.parametrize("mixed", [[HI, {"prompt": "a"}], [1, "a"], ["a", HI], [[1], 2]])
def test_mixed_lists_are_refused(cy, mixed):
    for call in (cy.generate, cy.stream, cy.submit, cy.next, cy.steps, cy.score):
        with pytest.raises(PromptError, match="a list mixes"):
            call(mixed)


def test_empty_prompts(cy, make, kit):
    for empty in ("", {"prompt": ""}, {"prompt": []}):
        with pytest.raises(PromptError, match="the prompt is empty"):
            cy.generate(empty)
    one, two = cy.generate(["", "a"], max_new_tokens=2)
    assert "the prompt is empty" in str(one.error) and two.text == "bc"
    (only,) = cy.generate([[]])
    assert "the prompt is empty" in str(only.error)
    words = kit.letters(12, specials=["<s>"], start_ids=(12,))
    started = make(zoo.markov(zoo.cycle(13)), words)
    assert started.generate("", max_new_tokens=3).text == "abc"


# ------------------------------------------------------------------------------- bad neighbours
BAD = {
    "empty": "",
    "too long": "a" * 600,
    "id": [1, 12],
    "negative id": [-1],
    "id 2**31": [2**31],
    "id 2**63": [2**63],
    "no number": [1.5],
    "bool": {"prompt": [True]},
    "surrogate": "a\ud800",
    "chat without template": [HI],
    "no prompt": {"seed": 1},
    "two prompts": {"prompt": "a", "messages": [HI]},
    "none": None,
    "bytes": b"a",
    "nan": {"prompt": "a", "temperature": NAN},
    "range": {"prompt": "a", "top_p": 1.01},
    "unknown": {"prompt": "a", "colour": 3},
    "later": {"prompt": "a", "token_healing": True},
    "unknown id": {"prompt": "a", "logit_bias": {99: 1.0}},
    "no stage": {"prompt": "a", "order": "hf", "frequency_penalty": 0.5},
    "contradiction": {"prompt": "a", "temperature": 0, "do_sample": True},
    "does not fit": {"prompt": "a", "max_new_tokens": 512},
    "stop id": {"prompt": "a", "stop_token_ids": [12]},
    "strategy": {"prompt": "a", "strategy": "magic"},
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_a_bad_request_alone_raises_and_harms_no_other(cy, bad):
    good = [
        {"prompt": "a", "max_new_tokens": 6, "seed": 1, "temperature": 3.0, "logprobs": 2, "n": 2},
        {"prompt": "bc", "max_new_tokens": 9, "num_beams": 3, "n": 2},
    ]
    alone = [facts_of(cy.generate(g)) for g in good]
    outputs = cy.generate([good[0], bad, good[1]])
    assert [facts_of(outputs[0]), facts_of(outputs[2])] == alone
    refused = outputs[1]
    assert isinstance(refused.error, UnspoolError) and len(refused) == 0
    assert refused.finish_reason == "error" and refused.usage.completion == 0
    message = str(refused.error)
    assert message and "\n" not in message and len(message) < 300
    json.dumps(refused.to_json(), allow_nan=False)
    with pytest.raises(type(refused.error)) as raised:
        refused.text  # noqa: B018
    assert raised.value is refused.error
    with pytest.raises(type(refused.error)):
        cy.generate(bad)
    with pytest.raises(type(refused.error)):
        cy.submit(bad)
    with pytest.raises(type(refused.error)):
        cy.stream(bad)


def test_what_is_wrong_with_the_call_itself_raises_for_a_batch_too(cy):
    for wrong in ({"temprature": 1}, {"top_p": 2}, {"token_healing": True}, {"order": "x"},
                  {"logit_bias": {99: 1.0}}, {"bad_words": [5]}):
        with pytest.raises(ParameterError):
            cy.generate(["a", "b"], **wrong)
        with pytest.raises(ParameterError):
            cy.stream(["a", "b"], **wrong)


class Damaged:
    """A model whose rows are NaN after one token: its weights are damaged there."""

    def __init__(self, model, token):
        self.model, self.token = model, token

    def __getattr__(self, name):
        return getattr(self.model, name)

    def score(self, spans):
        rows = self.model.score(spans).rows()
        at = 0
        for span in spans:
            for i in range(span.rows):
                if span.tokens[len(span.tokens) - span.rows + i] == self.token:
                    rows[at + i] = math.nan
            at += span.rows
        return type("Rows", (), {"rows": lambda self: rows})()


def test_a_row_that_is_no_distribution_ends_its_request_only(make, kit):
    lm = make(Damaged(zoo.markov(zoo.cycle(12)), 5), kit.letters())
    one, two = lm.generate(["c", "g"], max_new_tokens=4)
    assert isinstance(one.error, RowError) and (one.text, one.finish_reason) == ("def", "error")
    assert two.text == "hijk" and two.error is None
    with pytest.raises(RowError, match="NaN"):
        lm.generate("c", max_new_tokens=4)


def test_a_request_may_read_damaged_rows_as_numbers_and_its_neighbour_does_not(make, kit):
    """NaN counts as 0, all of them alike: the lowest id is taken."""
    lm = make(Damaged(zoo.markov(zoo.cycle(12)), 5), kit.letters())
    one, two = lm.generate([{"prompt": "c", "remove_invalid_values": True}, "c"], max_new_tokens=5)
    assert one.text == "defab" and one.error is None
    assert isinstance(two.error, RowError)
    assert one.tokens[3].processed_logprob == 0 and one.tokens[3].logprob == pytest.approx(
        -math.log(12))


# -------------------------------------------------------------------------------------- context
def test_the_context_is_a_limit_that_is_told(make, kit):
    lm = make(zoo.markov(zoo.cycle(12)), kit.letters(), context=20)
    with pytest.raises(PromptError, match="has 21 tokens and the model's context 20"):
        lm.generate("a" * 21)
    with pytest.raises(PromptError, match="has 20 tokens and the model's context 20: no room"):
        lm.generate("a" * 20)
    with pytest.raises(ParameterError, match=r"max_new_tokens=6 .* has 15 tokens .* 20; at most 5"):
        lm.generate("a" * 15, max_new_tokens=6)
    full = lm.generate("a" * 15, max_new_tokens=5)
    assert (full.text, full.finish_reason, full.notes) == ("bcdef", "length", ())
    short = lm.generate("a" * 15)
    assert short.text == "bcdef" and "shortened to the 5 tokens" in short.notes[0]
    assert lm.next("a" * 20).top(1)[0].text == "b"  # nothing is written
    with pytest.raises(PromptError, match="21 tokens"):
        lm.next("a" * 21)


# ------------------------------------------------------------------------------- without words
def test_a_model_without_a_tokenizer_has_ids_in_and_ids_out(make):
    lm = make(zoo.markov(zoo.cycle(12)))
    output = lm.generate([3], max_new_tokens=3)
    assert (output.token_ids, output.text) == ([4, 5, 6], "")
    assert [t.text for t in output.tokens] == ["4", "5", "6"]
    assert [e.type for e in lm.stream([3], max_new_tokens=2)] == ["commit", "commit", "finish"]
    assert lm.next([3]).prob(4) > 0.9
    assert lm.score([3, 4, 5]).scored == 2
    for step in lm.steps([3], max_new_tokens=1):
        step.choose(7)
        assert step.token == "7"
    for refused in (
        lambda: lm.generate("a"),
        lambda: lm.generate([HI]),
        lambda: lm.generate([3], stop="a"),
        lambda: lm.next([3]).prob("a"),
        lambda: lm.score("a"),
        lambda: lm.score([3], given="a"),
        lambda: next(lm.steps([3])).choose("a"),
    ):
        with pytest.raises(PromptError, match="this model was loaded without a tokenizer"):
            refused()


# -------------------------------------------------------------------------------------- streams
def joined(events):
    """The text of every (request, choice) by its commits, and the outputs by request."""
    texts, outputs = {}, {}
    for event in events:
        if event.type == "commit":
            key = event.index, event.choice
            texts[key] = texts.get(key, "") + event.text
        if event.type == "finish":
            outputs[event.index] = event.output
    return texts, outputs


def check(events):
    """Joined commits are the final text and tokens; what was provisional was moved or revoked."""
    events = list(events)
    texts, outputs = joined(events)
    for index, output in outputs.items():
        for choice in output:
            assert texts.get((index, choice.index), "") == choice.text
            tokens = [
                token.id
                for e in events
                if (e.type, e.index, e.choice) == ("commit", index, choice.index)
                for token in e.tokens
            ]
            assert tokens == choice.token_ids
    final, tentative = {}, {}
    for e in events:
        key = e.index, e.choice
        tail = tentative.setdefault(key, [])
        match e.type:
            case "provisional":
                tail += [t.id for t in e.tokens]
            case "revoke":
                assert 0 < e.count <= len(tail)
                del tail[len(tail) - e.count :]
            case "commit":
                ids = [t.id for t in e.tokens]
                moved = min(len(tail), len(ids))
                assert tail[:moved] == ids[:moved]
                del tail[:moved]
                final[key] = final.get(key, []) + ids
    assert not any(tentative.values())
    return outputs


STREAMS = [
    {},
    {"temperature": 1.0},
    {"temperature": 2.0, "n": 4},
    {"num_beams": 4},
    {"num_beams": 4, "n": 3, "length_penalty": 0.0},
    {"num_beams": 3, "early_stopping": True, "eos_token_id": list(range(0, 256, 5))},
    {"temperature": 1.5, "n": 3, "stop": ["e", "th", "\n"]},
    {"num_beams": 3, "n": 2, "stop": ["a", "zzz"]},
    {"temperature": 1.5, "stop_token_ids": list(range(100))},
    {"temperature": 1.5, "stop_token_ids": list(range(100)), "include_stop_str_in_output": True},
    {"temperature": 9.0, "skip_special_tokens": False},
]


@pytest.mark.parametrize("params", STREAMS, ids=repr)
def test_joined_commits_are_the_final_text(wide, params):
    """A model that knows nothing writes bytes that are no characters, too."""
    params = {"max_new_tokens": 14, "seed": 3, **params}
    output = check(wide.stream("Hello", **params))[0]
    again = wide.generate("Hello", **params)
    assert ids_of(again) == ids_of(output) and [c.text for c in again] == [c.text for c in output]
    assert output.token_ids


def test_streams_of_a_batch_are_told_apart(wide):
    batch = [{"prompt": f"{i}", **params} for i, params in enumerate(STREAMS)]
    outputs = check(wide.stream(batch, max_new_tokens=9, seed=5))
    assert sorted(outputs) == list(range(len(batch)))
    plain = wide.generate(batch, max_new_tokens=9, seed=5)
    assert [ids_of(outputs[i]) for i in range(len(batch))] == [ids_of(o) for o in plain]


def test_a_refused_request_of_a_streamed_batch_is_told_by_its_number(cy):
    events = list(cy.stream(["a", "", "c"], max_new_tokens=2))
    outputs = check(events)
    assert [outputs[i].error is None for i in range(3)] == [True, False, True]
    assert [outputs[0].text, outputs[2].text] == ["bc", "de"]
    with pytest.raises(PromptError):
        cy.stream("", max_new_tokens=2)


def test_an_error_in_a_single_stream_is_raised_after_its_end(make, kit):
    lm = make(Damaged(zoo.markov(zoo.cycle(12)), 5), kit.letters())
    seen = []
    with pytest.raises(RowError):
        for event in lm.stream("c", max_new_tokens=9):
            seen.append(event)
    assert seen[-1].type == "finish" and "".join(e.text for e in seen) == "def"


def test_leaving_a_stream_cancels_what_it_asked_for(cy):
    events = cy.stream(["a", "b", "c"], max_new_tokens=400)
    next(events)
    events.close()
    jobs = cy.worker.loop.engine.jobs
    cy.generate("a", max_new_tokens=3)  # by then the worker has heard of it
    assert not [job for job in jobs if job.live]
    for event in cy.stream("a", max_new_tokens=400):
        assert event.type == "commit"
        break
    cy.generate("a", max_new_tokens=3)
    assert cy.worker.loop.engine.jobs == []


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="this system has no such signals")
@pytest.mark.parametrize("call", ["generate", "stream", "steps", "next", "score"])
def test_an_interrupt_cancels_what_was_asked_for(gated, call):
    """As Ctrl-C does, wherever the caller waits."""
    lm, gate = gated

    def interrupt(signum, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            list(getattr(lm, call)(["ab", "bc"] if call != "steps" else "ab"))
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, before)
    gate.open()
    assert lm.generate("a", max_new_tokens=2).text == "bc"
    assert lm.worker.loop.engine.jobs == []


def test_a_stream_that_is_never_read_asks_for_nothing(cy):
    cy.stream("a", max_new_tokens=400)
    cy.steps("a", max_new_tokens=400)
    assert cy.worker.thread is None


# ---------------------------------------------------------------------------------------- stops
@pytest.mark.parametrize(
    ("stop", "text", "reason"),
    [
        ("efg", "bcd", "efg"),
        ("efx", "bcdefghijk", "max_new_tokens"),
        (["de", "c"], "b", "c"),
        (["c", "de"], "b", "c"),
        (["cde", "cd"], "b", "cd"),
        ("k", "bcdefghij", "k"),
        ("ab", "bcdefghijk", "max_new_tokens"),  # the prompt's "a" does not count
        (["x" * i for i in range(1, 64)] + ["f"], "bcde", "f"),
    ],
)
def test_stop_strings(cy, stop, text, reason):
    """B34."""
    output = check(cy.stream("a", max_new_tokens=10, stop=stop))[0]
    assert (output.text, output.stop_reason) == (text, reason)
    assert output.finish_reason == ("length" if reason == "max_new_tokens" else "stop")
    assert output.token_ids == [1 + i for i in range(output.usage.completion)]
    held = cy.generate("a", max_new_tokens=10, stop=stop, include_stop_str_in_output=True)
    assert held.text == text + (reason if held.finish_reason == "stop" else "")


def test_an_empty_stop_string_is_refused(cy):
    for stop in ("", ["a", ""]):
        with pytest.raises(ParameterError, match="stop"):
            cy.generate("a", stop=stop)


def test_a_stop_inside_a_token_and_every_stop_across_borders(make, kit):
    """CN-07, through the whole system: the text cut at the first match, no character lost."""
    names = ["defg", "hij", "bc"]
    words = kit.letters(12, names)
    lm = make(zoo.markov(zoo.cycle(15)), words)
    ids = [0, 14, 12, 13, 10, 11, 12, 1, 14]
    text = "abcdefghijkldefgbbc"
    out = lm.generate([0], strategy=Force(tuple(ids)), max_new_tokens=len(ids))
    assert out.text == text
    spans = {text[i:j] for i, j in itertools.combinations(range(len(text) + 1), 2) if j - i <= 12}
    asked = [
        {"prompt": [0], "strategy": Force(tuple(ids)), "max_new_tokens": len(ids), "stop": stop}
        for stop in sorted(spans)
    ]
    for request, output in zip(asked, lm.generate(asked), strict=True):
        stop = request["stop"]
        assert (output.text, output.stop_reason) == (text[: text.index(stop)], stop)
    assert len(asked) > 100


def test_characters_of_several_bytes_stream_whole(make, kit):
    text = "Ein 🤷🏽‍♀️, 日本語 é שלום"
    lm = make(zoo.tiny(vocab_size=256, max_position_embeddings=512), kit.byte_level())
    ids = tuple(text.encode())
    for stop in (None, "語", "🏽", "‍", "zz"):
        events = list(lm.stream("x", strategy=Force(ids), max_new_tokens=len(ids), stop=stop))
        output = check(events)[0]
        assert output.text == text[: None if stop in (None, "zz") else text.index(stop)]
        for event in events:
            assert "\ufffd" not in event.text
            assert stop is None or stop not in event.text


def test_special_tokens_in_the_text_and_not(make, kit):
    words = kit.letters(12, specials=["<end>", "<x>"], eos_ids=frozenset({12}))
    table = zoo.cycle(14)
    lm = make(zoo.markov(table), words, ends={12})
    force = {"strategy": Force((0, 13, 1, 12)), "max_new_tokens": 4}
    ended = lm.generate("a", **force)
    assert (ended.text, ended.token_ids, ended.stop_reason) == ("ab", [0, 13, 1, 12], 12)
    seen = lm.generate("a", skip_special_tokens=False, **force)
    assert seen.text == "a<x>b"
    kept = lm.generate(
        "a", skip_special_tokens=False, include_stop_str_in_output=True, **force)  # fmt: skip
    assert kept.text == "a<x>b<end>"
    ignored = lm.generate("a", skip_special_tokens=False, ignore_eos=True, **force)
    assert (ignored.text, ignored.finish_reason) == ("a<x>b<end>", "length")
    for params in ({}, {"skip_special_tokens": False}, {"stop": "x>"}):
        output = check(lm.stream("a", **force, **params))[0]
        pieces = b"".join(t.bytes for t in output.tokens).decode()
        assert pieces.startswith(output.text)
    assert lm.generate("a", stop="x>", skip_special_tokens=False, **force).text == "a<"
    assert lm.generate("a", stop="x>", **force).text == "ab"  # it is not in the text


def ring():
    """B24: from every token EOS 4 has logit 5, EOS 9 logit 4, the next of the ring logit 3."""
    table = torch.full((12, 12), -4.0)
    order = [0, 1, 2, 3, 5, 6, 7, 8, 10, 11]
    for i in range(12):
        table[i, order[(order.index(i) + 1) % 10] if i in order else 0] = 3.0
        table[i, 9], table[i, 4] = 4.0, 5.0
    return table


def test_the_set_of_end_tokens(make, kit):
    """B24, without min_tokens."""
    lm = make(zoo.markov(ring()), kit.letters(), ends={4, 9})
    prompt = [1] * 50
    first = lm.generate(prompt, max_new_tokens=20)
    assert (first.token_ids, first.finish_reason, first.stop_reason) == ([4], "stop", 4)
    assert first.text == ""
    table = ring()
    table[:, 4] = -100
    nine = make(zoo.markov(table), kit.letters(), ends={4, 9})
    assert nine.generate(prompt, max_new_tokens=20).token_ids == [9]
    table[:, 9] = -100
    none = make(zoo.markov(table), kit.letters(), ends={4, 9})
    user = none.generate(prompt, max_new_tokens=20, stop_token_ids=[7])
    assert (user.token_ids, user.stop_reason, user.text) == ([2, 3, 5, 6, 7], 7, "cdfg")
    added = lm.generate(prompt, max_new_tokens=20, stop_token_ids=[7])
    assert added.token_ids == [4]  # added to the end set, not in its place
    replaced = none.generate(prompt, max_new_tokens=20, eos_token_id=5)
    assert (replaced.token_ids, replaced.stop_reason) == ([2, 3, 5], 5)
    ignored = lm.generate(prompt, max_new_tokens=20, ignore_eos=True)
    assert (len(ignored.token_ids), ignored.finish_reason) == (20, "length")
    assert set(ignored.token_ids) == {4}


def test_stop_reasons(cy):
    def ran(**params):
        output = cy.generate("a", max_new_tokens=30, **params)
        return output.finish_reason, output.stop_reason

    assert ran() == ("length", "max_new_tokens")
    assert ran(max_length=5) == ("length", "max_length")
    assert ran(max_time=1e-9) == ("length", "max_time")
    assert ran(stop="f") == ("stop", "f")
    assert ran(stop_token_ids=[3]) == ("stop", 3)
    assert ran(eos_token_id=[3]) == ("stop", 3)
    assert ran(repetition_detection={"max_pattern_size": 12}) == ("stop", "repetition")
    assert ran(confidence_stop=0.9999) == ("stop", "confidence_stop")
    assert ran(stop_token_ids=[3], max_length=4) == ("stop", 3)  # a stop outranks a length


# ------------------------------------------------------------------------------ n, beams, seeds
def test_n_of_4_is_the_first_four_of_8(wide):
    """B26."""
    eight = wide.generate("Hello", temperature=1.5, max_new_tokens=12, n=8, seed=7)
    assert len({tuple(ids) for ids in ids_of(eight)}) == 8
    assert ids_of(wide.generate("Hello", temperature=1.5, max_new_tokens=12, n=8, seed=7)) == \
        ids_of(eight)  # fmt: skip
    four = wide.generate("Hello", temperature=1.5, max_new_tokens=12, n=4, seed=7)
    assert ids_of(four) == ids_of(eight)[:4]
    assert [c.index for c in eight] == list(range(8))
    one = wide.generate("Hello", temperature=1.5, max_new_tokens=12, seed=7)
    assert ids_of(one) == ids_of(eight)[:1]


def test_unseeded_calls_differ_and_say_how_to_repeat_them(wide):
    params = {"temperature": 1.5, "max_new_tokens": 12}
    outputs = [wide.generate("Hello", **params) for _ in range(3)]
    outputs += wide.generate(["Hello", "Hello"], **params)
    assert len({tuple(o.token_ids) for o in outputs}) == 5
    for output in outputs:
        assert output.seed == output.params["seed"]
        again = wide.generate("Hello", **params, seed=output.seed)
        assert ids_of(again) == ids_of(output)


def test_a_neighbour_without_a_seed_destroys_no_seed(wide):
    """B25: alone, beside an unseeded one, beside another seed, swapped, joined later, greedy."""
    mine = {"prompt": "Hi", "temperature": 0.8, "seed": 42, "max_new_tokens": 16}
    alone = wide.generate(mine).token_ids
    others = [
        {"prompt": "Hi", "temperature": 0.8, "max_new_tokens": 16},
        {"prompt": "Hi", "temperature": 0.8, "seed": 7, "max_new_tokens": 16},
        {"prompt": "Hi", "temperature": 0.8, "max_new_tokens": 2},
        {"prompt": "Hi", "temperature": 0, "max_new_tokens": 16},
    ]
    torch.manual_seed(3)
    np.random.seed(3)
    for other in others:
        assert wide.generate([mine, other])[0].token_ids == alone
        assert wide.generate([other, mine])[1].token_ids == alone
    running = wide.stream("other", temperature=1.0, max_new_tokens=30)
    for _ in range(3):
        next(running)
    assert wide.generate(mine).token_ids == alone
    running.close()
    assert wide.generate({**mine, "seed": 43}).token_ids != alone


def test_greedy_n_gives_equal_texts_and_a_note(wide):
    output = wide.generate("Hello", n=3, max_new_tokens=5)
    assert ids_of(output) == [output.token_ids] * 3
    assert any("equal" in note for note in output.notes)


def test_beams_come_best_first_with_scores_that_add_up(wide):
    output = wide.generate("Hello", num_beams=6, n=4, max_new_tokens=7, length_penalty=0.7)
    assert len({tuple(ids) for ids in ids_of(output)}) == len(output) == 4
    scores = [c.score for c in output]
    assert scores == sorted(scores, reverse=True)
    for choice in output:
        total = sum(t.processed_logprob for t in choice.tokens)
        assert choice.score == pytest.approx(total / len(choice.tokens) ** 0.7, abs=1e-9)
        assert choice.logprob == pytest.approx(total, abs=1e-9)  # no rules: raw = processed
        judged = wide.score(choice.token_ids, given="Hello")
        assert judged.logprob == pytest.approx(choice.logprob, abs=1e-9)
    assert wide.generate("Hello", num_beams=1, max_new_tokens=7).token_ids == \
        wide.generate("Hello", max_new_tokens=7).token_ids  # fmt: skip


# --------------------------------------------------------------------------------------- memory
def test_without_memory_the_same_text_and_more_work(wide):
    params = {"max_new_tokens": 12, "temperature": 1.0, "seed": 5}
    kept = wide.generate("Hello", **params)
    fresh = wide.generate("Hello", **params, use_cache=False)
    assert kept.token_ids == fresh.token_ids
    assert kept.logprob == pytest.approx(fresh.logprob, abs=1e-9)
    assert kept.usage.computed == 5 + 12 - 1
    assert fresh.usage.computed == sum(range(5, 17)) and fresh.usage.cached == 0


def test_a_second_request_finds_the_first_ones_keys_unless_its_salt_differs(wide):
    prompt = "Hello, you there, how do you do today?"
    ran = [wide.generate(prompt, max_new_tokens=2, cache_salt=salt) for salt in ("", "", "x", "x")]
    cached = [o.usage.cached for o in ran]
    assert cached[0] == cached[2] == 0 and cached[1] == cached[3] > 16
    assert len({tuple(o.token_ids) for o in ran}) == 1
    for output in ran:
        assert output.usage.cached + output.usage.computed == len(prompt) + 1


# ------------------------------------------------------------------------------- model defaults
def test_the_models_own_values_and_their_sources(make, kit):
    defaults = {"do_sample": True, "temperature": 0.6, "top_k": 3, "max_new_tokens": 5,
                "transformers_version": "5", "penalty_alpha": 0.6}  # fmt: skip
    lm = make(zoo.markov(zoo.cycle(12, second=2.0)), kit.letters(), defaults=defaults)
    output = lm.generate("a", seed=1)
    assert len(output.token_ids) == 5 and output.params["temperature"] == 0.6
    assert any("penalty_alpha=0.6 (only a request names it)" in note for note in output.notes)
    rows = {name: (value, source) for name, value, source in lm.explain("a", top_k=4).rows}
    assert rows["temperature"] == (0.6, "model") and rows["top_k"] == (4, "user")
    assert rows["top_p"] == (1.0, "default") and rows["seed"][1] == "derived"
    assert rows["max_new_tokens"] == (5, "model")


def test_next_is_raw_unless_the_user_shapes_it(make, kit):
    defaults = {"do_sample": True, "temperature": 0.6, "top_k": 1}
    lm = make(zoo.markov(zoo.cycle(12, second=2.0)), kit.letters(), defaults=defaults)
    raw = lm.next("a")
    weights = np.exp([4.0, 2.0] + [-4.0] * 10)
    assert raw.prob("b") == pytest.approx(weights[0] / weights.sum(), abs=1e-9)
    assert lm.next("a", use_cache=False, seed=3).prob("b") == raw.prob("b")
    assert lm.next("a", temperature=1.0).prob("b") == pytest.approx(raw.prob("b"))
    assert lm.next("a", do_sample=True).prob("b") == pytest.approx(raw.prob("b"))
    warm = lm.next("a", temperature=2.0)
    weights = weights**0.5
    assert warm.prob("b") == pytest.approx(weights[0] / weights.sum(), abs=1e-9)
    assert len(lm.next("a", top_k=2).top(10)) == 2
    held = lm.next("a", bad_words=["b"])  # the whole distribution, though nobody asked to sample
    assert held.prob("b") == 0 and held.prob("c") > held.prob("d") > 0
    assert lm.next("a", temperature=0, bad_words=["b"]).prob("c") == 1
    assert lm.next("a").logits is not None and held.logits is None
    assert lm.next("a", strategy="greedy").prob("b") == 1 == lm.next("a", temperature=0).prob("b")
    assert [d.prob("b") for d in lm.next(["a", "b"])] == [raw.prob("b"), lm.next("b").prob("b")]


@pytest.mark.parametrize(
    "params",
    [{"n": 2}, {"num_beams": 2}, {"strategy": "beam:3"}, {"max_new_tokens": 1}, {"stop": "a"},
     {"logprobs": 2}, {"max_length": 9}, {"ignore_eos": True}, {"strategy": "mbr"},
     {"strategy": "greedy@3 >> sample"}, {"must_contain": ["x"]}, {"penalty_alpha": 0.5},
     {"best_of": 2}],
    ids=repr,
)  # fmt: skip
def test_next_refuses_what_it_cannot_honour(cy, params):
    with pytest.raises(ParameterError, match="next reads one distribution"):
        cy.next("a", **params)


def test_next_leaves_nothing_behind(cy):
    with pytest.raises(PromptError):
        cy.next(["a", ""])  # the good one has not begun
    assert cy.worker.thread is None
    cy.next(["a", "b"])
    cy.generate("a", max_new_tokens=2)
    assert cy.worker.loop.engine.jobs == []


# ------------------------------------------------------------------------------ the default model
def test_the_default_model_writes(smol):
    prompt = "The color of sky is"
    output = smol.generate(prompt, max_new_tokens=6)
    assert output.prompt == prompt and len(output.token_ids) == 6
    assert smol.tokenizer.decode(output.token_ids, start=False) == output.text
    top = smol.next(prompt).top(2)
    assert [t.text for t in top] == [" a", " "] and top[0].prob == pytest.approx(0.1134, abs=5e-4)
    events = list(smol.stream(prompt, max_new_tokens=6, num_beams=3, n=2))
    assert check(events)[0].finish_reason == "length"
    assert {"provisional", "commit", "finish"} <= {e.type for e in events}
    assert smol.generate(prompt, max_new_tokens=6, use_cache=False).text == output.text


def test_the_default_model_answers_a_chat(smol):
    chat = [{"role": "user", "content": "Say hi."}]
    output = smol.generate(chat, max_new_tokens=4)
    ids = smol.tokenizer.encode_chat(chat)
    assert output.usage.prompt == len(ids) and output.text
    assert smol.generate(ids, max_new_tokens=4).token_ids == output.token_ids


def test_an_emoji_of_the_default_model_streams_whole(smol):
    """B33."""
    ids = (10813, 114, 132, 10813, 233, 138, 321, 231, 34625, 218, 31752)
    events = list(smol.stream("Hm", strategy=Force(ids), max_new_tokens=len(ids)))
    assert check(events)[0].text == smol.tokenizer.decode(ids) == "🤷🏽‍♀️"
    assert not any("\ufffd" in e.text for e in events)
    (paris,) = smol.tokenizer.encode(" Paris")
    stopped = smol.generate("Hm", strategy=Force((paris,)), max_new_tokens=1, stop="Pari")
    assert (stopped.text, stopped.stop_reason) == (" ", "Pari")


def test_a_model_prints_what_it_is(cy):
    assert repr(cy) == f"LLM({cy.name}, numerics reference, on cpu)"


@pytest.mark.parametrize("name", ["logits_processor", "prefix_allowed_tokens_fn"])
def test_a_function_is_forgotten_with_its_request(smol, name):
    class Mine:
        def __call__(self, one, other):
            return other

    mine = Mine()
    gone = weakref.ref(mine)
    smol.generate("Hello", max_new_tokens=2, top_k=5, seed=1, **{name: mine})
    del mine
    smol.generate("Hello", max_new_tokens=1)  # the engine is done with the one before
    gc.collect()
    assert gone() is None
