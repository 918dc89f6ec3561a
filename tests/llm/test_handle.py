"""Handles: whatever happens, whoever waits gets an answer."""

import asyncio
import threading
from dataclasses import dataclass

import models_zoo as zoo
import pytest

from unspool.core.errors import ModelError, UnspoolError
from unspool.strategies import Sample

SOON = 30  # seconds: a test that waits longer has found a handle that hangs


def in_threads(count, work):
    """`work(i)` in that many threads at once; their results."""
    found, start = [None] * count, threading.Barrier(count)

    def run(i):
        start.wait()
        found[i] = work(i)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    assert not any(thread.is_alive() for thread in threads)
    return found


# ------------------------------------------------------------------------------------- results
def test_submit_returns_at_once_and_the_result_comes(gated):
    lm, gate = gated
    handle = lm.submit("a", max_new_tokens=3)
    assert not handle.done
    gate.open()
    assert handle.result(SOON).text == "bcd" and handle.done
    assert handle.result().text == "bcd"  # again, at once


def test_a_result_may_be_waited_for_a_while_only(gated):
    lm, gate = gated
    handle = lm.submit("a", max_new_tokens=3)
    with pytest.raises(TimeoutError):
        handle.result(timeout=0.05)
    gate.open()
    assert handle.result(SOON).finish_reason == "length"  # the wait had ended, not the request


def test_the_events_of_a_handle(cy):
    handle = cy.submit("a", max_new_tokens=3)
    events = list(handle)
    assert [e.type for e in events] == ["commit"] * 3 + ["finish"]
    assert "".join(e.text for e in events) == "bcd"
    assert [t.id for e in events for t in e.tokens] == [1, 2, 3]
    assert events[-1].output is handle.result()


def test_iterating_again_gives_the_end_only(cy):
    """An event goes to one reader, the end to every one: nobody waits for ever."""
    handle = cy.submit("a", max_new_tokens=3)
    assert len(list(handle)) == 4
    for _ in range(2):
        assert [e.type for e in handle] == ["finish"]


def test_leaving_an_iteration_leaves_the_request(cy):
    handle = cy.submit("a", max_new_tokens=5)
    for event in handle:
        assert event.text == "b"
        break
    assert "".join(e.text for e in handle) == "cdef"
    assert handle.result().finish_reason == "length"


def test_readers_in_several_threads_share_the_events(gated):
    lm, gate = gated
    handle = lm.submit("a", max_new_tokens=10)
    gate.open()
    read = in_threads(4, lambda i: list(handle) if i else handle.result(SOON))
    assert read[0].text == "bcdefghijk"
    texts = [e.text for events in read[1:] for e in events if e.type == "commit"]
    assert sorted(texts) == sorted("bcdefghijk")
    assert all(events[-1].type == "finish" for events in read[1:])


# --------------------------------------------------------------------------------------- await
def test_a_handle_can_be_awaited(cy):
    async def both():
        return await asyncio.gather(*(cy.submit(p, max_new_tokens=2) for p in "ab"))

    assert [o.text for o in asyncio.run(both())] == ["bc", "cd"]


def test_awaiting_raises_what_ended_the_request(make, kit):
    lm = make(Broken(zoo.markov(zoo.cycle(12)), 2), kit.letters())

    async def wait():
        return await lm.submit("a", max_new_tokens=5)

    with pytest.raises(ModelError, match="broken"):
        asyncio.run(wait())


def test_giving_up_an_await_cancels_the_request(gated):
    """And the engine lives on: the future is not the waiter's to cancel."""
    lm, gate = gated

    async def impatient(handle):
        await asyncio.wait_for(handle.wait(), 0.05)

    handle = lm.submit("a", max_new_tokens=100)
    with pytest.raises(TimeoutError):
        asyncio.run(impatient(handle))
    assert not handle.future.cancel()
    gate.open()
    assert handle.result(SOON).finish_reason == "cancelled"
    assert lm.submit("a", max_new_tokens=2).result(SOON).text == "bc"


# -------------------------------------------------------------------------------------- cancel
def test_cancel_before_it_has_begun(gated):
    lm, gate = gated
    first = lm.submit("a", max_new_tokens=3)
    gate.waiting.wait(SOON)  # the engine is within a forward of the first
    second = lm.submit("b", max_new_tokens=3)
    second.cancel()
    gate.open()
    output = second.result(SOON)
    assert (output.finish_reason, output.stop_reason) == ("cancelled", None)
    assert (output.text, output.token_ids, output.usage.forwards) == ("", [], 0)
    assert first.result(SOON).text == "bcd"


def test_cancel_midway_keeps_what_was_written(gated):
    lm, gate = gated
    handle = lm.submit("a", max_new_tokens=100)
    gate.open(3)
    events = iter(handle)
    written = [next(events).text for _ in range(3)]
    handle.cancel()
    gate.open(2)  # it may be within one step when it hears of it
    output = handle.result(SOON)
    assert output.finish_reason == "cancelled"
    assert output.text.startswith("".join(written)) and len(output.token_ids) <= 5
    assert "".join(written) + "".join(e.text for e in events) == output.text


@pytest.mark.parametrize("params", [{"num_beams": 3, "n": 2}, {"n": 3, "temperature": 1.0}])
def test_cancelled_texts_are_those_of_the_cancelled_tokens(make, kit, params):
    """Also for a search, where what was not yet certain is certain now."""
    lm = make(zoo.tiny(vocab_size=256, max_position_embeddings=2048), kit.byte_level())
    handle = lm.submit([65], max_new_tokens=1500, seed=1, **params)
    texts = {}
    for number, event in enumerate(handle):
        texts[event.choice] = texts.get(event.choice, "") + event.text
        if number == 12:
            handle.cancel()
    output = handle.result(SOON)
    assert len(output) == params["n"] and output[0].token_ids
    for choice in output:
        assert choice.finish_reason == "cancelled"
        assert choice.text == lm.tokenizer.decode(choice.token_ids, start=False)
        assert choice.text == texts.get(choice.index, "")


def test_cancel_within_a_possible_stop_gives_back_what_was_held(gated):
    lm, gate = gated
    handle = lm.submit("a", max_new_tokens=100, stop="bcdx")
    gate.open(2)
    events = iter(handle)
    assert [next(events).text, next(events).text] == ["", ""]
    handle.cancel()
    gate.open()
    assert handle.result(SOON).text.startswith("bc")


def test_cancel_after_the_end_changes_nothing(cy):
    handle = cy.submit("a", max_new_tokens=3)
    output = handle.result(SOON)
    handle.cancel()
    handle.cancel()
    assert handle.result() is output and output.finish_reason == "length"
    assert cy.generate("a", max_new_tokens=2).text == "bc"


# -------------------------------------------------------------------------------------- faults
class Broken:
    """A model that fails at its `last`-th forward, and works again after it."""

    def __init__(self, model, last):
        self.model, self.left = model, last

    def __getattr__(self, name):
        return getattr(self.model, name)

    def score(self, spans):
        self.left -= 1
        if self.left == 0:
            raise ModelError("broken")
        return self.model.score(spans)


def test_a_failed_forward_is_told_and_what_was_written_stays(make, kit):
    lm = make(Broken(zoo.markov(zoo.cycle(12)), 3), kit.letters())
    handle = lm.submit("a", max_new_tokens=9)
    seen = []
    with pytest.raises(ModelError, match="broken"):
        for event in handle:
            seen.append(event)
    assert [e.type for e in seen] == ["commit", "commit", "finish"]
    output = seen[-1].output
    assert (output.text, output.finish_reason, output.stop_reason) == ("bc", "error", "ModelError")
    with pytest.raises(ModelError, match="broken"):
        handle.result()
    assert lm.generate("a", max_new_tokens=3).text == "bcd"


@dataclass(frozen=True)
class Faulty(Sample):
    """A caller's strategy that fails at one of its four methods."""

    place: str = ""
    error: type = ValueError

    def at(self, place):
        if place == self.place:
            raise self.error("my own mistake")

    def open(self, job):
        self.at("open")
        return super().open(job)

    def decide(self, job, slots):
        self.at("decide")
        return super().decide(job, slots)

    def ranked(self, job):
        self.at("ranked")
        return super().ranked(job)


@pytest.mark.parametrize("place", ["open", "decide", "ranked"])
@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_a_strategy_that_fails_ends_its_request_and_no_thread(cy, place, error):
    handle = cy.submit("a", strategy=Faulty(place=place, error=error), max_new_tokens=3)
    with pytest.raises((ValueError, UnspoolError), match="my own mistake"):
        handle.result(SOON)
    with pytest.raises((ValueError, UnspoolError)):
        for _ in handle:
            pass
    assert cy.generate("a", max_new_tokens=3).text == "bcd"


@dataclass(frozen=True)
class Nonsense(Sample):
    """Answers that are no branches: the output cannot be built."""

    def ranked(self, job):
        return [(None, 0.0)]


def test_an_output_that_cannot_be_built_is_an_error_and_no_hang(cy):
    with pytest.raises(AttributeError):
        cy.submit("a", strategy=Nonsense(), max_new_tokens=3).result(SOON)
    assert cy.generate("a", max_new_tokens=3).text == "bcd"


class Unlabelled:
    """A tokenizer that fails when a token is shown."""

    def __init__(self, words):
        self.words = words

    def __getattr__(self, name):
        return getattr(self.words, name)

    def piece(self, token, skip_special_tokens=True):
        if token == 3 and not skip_special_tokens:
            raise RuntimeError("no name for it")
        return self.words.piece(token, skip_special_tokens=skip_special_tokens)


def test_an_event_that_cannot_be_built_ends_the_request(make, kit):
    lm = make(zoo.markov(zoo.cycle(12)), Unlabelled(kit.letters()))
    handle = lm.submit("a", max_new_tokens=100)
    with pytest.raises(RuntimeError, match="no name"):
        handle.result(SOON)
    assert handle.job.live == []  # nothing goes on that nobody can read
    assert lm.generate("e", max_new_tokens=3).text == "fgh"


# ------------------------------------------------------------------------------------- threads
def test_sixteen_threads_each_get_what_they_get_alone(wide):
    asked = [
        {"prompt": [65 + i, 66, 67], "max_new_tokens": 6 + i % 5, "seed": i,
         "temperature": 0.5 + i / 10, "n": 1 + i % 3}
        for i in range(16)
    ]  # fmt: skip
    alone = [wide.generate(a) for a in asked]
    together = in_threads(16, lambda i: wide.submit(asked[i]).result(SOON))
    for one, other in zip(alone, together, strict=True):
        assert [c.token_ids for c in one] == [c.token_ids for c in other]
        assert [c.text for c in one] == [c.text for c in other]
        assert one.logprob == pytest.approx(other.logprob, abs=1e-9)


def test_sixteen_threads_with_text_and_chat(make, kit):
    words = kit.letters(26, "<>/", chat_template=kit.chat)
    lm = make(zoo.markov(zoo.cycle(29)), words)
    prompts = [
        "a" * (i + 1) if i % 2 else [{"role": "user", "content": "b" * i}] for i in range(16)
    ]
    alone = [lm.generate(p, max_new_tokens=4).text for p in prompts]
    assert len(set(alone)) == 2
    assert in_threads(16, lambda i: lm.generate(prompts[i], max_new_tokens=4).text) == alone
