"""The engine's thread: it ends when it should, and outlives everything else."""

import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import models_zoo as zoo
import pytest

from unspool.core.errors import UnspoolError
from unspool.engine.scheduler import Scheduler
from unspool.llm.facts import Facts
from unspool.llm.llm import LLM
from unspool.memories import MEMORIES

SOON = 30  # seconds: a test that waits longer has found something that hangs
TESTS = Path(__file__).resolve().parent.parent


def build(scheduler=None):
    """CY(12) on ids, closed by nobody."""
    model = zoo.markov(zoo.cycle(12))
    facts = Facts("tiny", "reference", 12, 512)
    return LLM(model, facts, MEMORIES["dense"](model.context), scheduler)


def engine_threads():
    return [t for t in threading.enumerate() if t.name == "unspool-engine"]


# --------------------------------------------------------------------------------------- close
def test_close_ends_everything(gated):
    lm, gate = gated
    running = lm.submit("a", max_new_tokens=100)
    gate.open(2)
    next(iter(running))
    gate.waiting.wait(SOON)
    waiting = [lm.submit("b", max_new_tokens=9), lm.submit("c", max_new_tokens=9, num_beams=2)]
    held = lm.steps("d", max_new_tokens=9)
    thread = lm.worker.thread
    closing = threading.Thread(target=lm.close)
    closing.start()
    gate.open()
    closing.join(SOON)
    assert not closing.is_alive() and not thread.is_alive()
    for handle in (running, *waiting):
        assert handle.result(SOON).finish_reason == "cancelled"
        assert list(handle)[-1].type == "finish"
    assert running.result().text.startswith("b")
    with pytest.raises(UnspoolError, match="closed"):
        next(held)


def test_a_search_that_is_closed_midway_shows_all_it_wrote(make, kit):
    lm = make(zoo.tiny(vocab_size=256, max_position_embeddings=2048), kit.byte_level())
    handle = lm.submit([65], max_new_tokens=1500, num_beams=3)
    events = iter(handle)
    seen = [next(events) for _ in range(6)]
    lm.close()
    seen += events
    output = handle.result(SOON)
    assert output.finish_reason == "cancelled" and output.token_ids
    assert "".join(e.text for e in seen) == output.text
    assert output.text == lm.tokenizer.decode(output.token_ids, start=False)


def test_a_closed_model_refuses_every_call(cy):
    cy.generate("a", max_new_tokens=1)
    handle = cy.submit("a", max_new_tokens=1)
    handle.result(SOON)
    cy.close()
    cy.close()
    calls = [cy.generate, cy.stream, cy.submit, cy.next, cy.steps, cy.score]
    for call in calls:
        with pytest.raises(UnspoolError, match="this model is closed: load it again"):
            call("a")
    for call in (cy.generate, cy.stream, cy.next, cy.score):
        with pytest.raises(UnspoolError, match="closed"):
            call(["a", "b"])
    handle.cancel()  # there is nothing left to cancel
    assert handle.result().text == "b"


def test_a_model_that_was_never_used_is_closed_too():
    lm = build()
    before = engine_threads()
    with lm:
        pass
    lm.close()
    assert engine_threads() == before
    with pytest.raises(UnspoolError, match="closed"):
        lm.generate([1])
    assert lm.model.stack == []  # the weights are gone


def test_closing_frees_weights_and_memory(cy):
    cy.generate("abc", max_new_tokens=3)
    cy.close()
    memory = cy.worker.loop.engine.runner.memory
    assert cy.model.stack == [] and memory.buffers == {} and memory.index == {}


def test_many_may_close_at_once(gated):
    lm, gate = gated
    handle = lm.submit("a", max_new_tokens=100)
    threads = [threading.Thread(target=lm.close) for _ in range(8)]
    for thread in threads:
        thread.start()
    gate.open()
    for thread in threads:
        thread.join(SOON)
    assert not any(t.is_alive() for t in [*threads, lm.worker.thread])
    assert handle.result(SOON).finish_reason == "cancelled"


def test_submitting_while_another_closes_never_hangs():
    for _ in range(20):
        lm, found = build(), []

        def ask(lm=lm, found=found):
            try:
                found.append(lm.submit([1], max_new_tokens=400).result(SOON).finish_reason)
            except UnspoolError as error:
                found.append(str(error))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        lm.close()
        for thread in threads:
            thread.join(SOON)
        assert len(found) == 4
        assert set(found) <= {"length", "cancelled", "this model is closed: load it again"}


def test_closing_on_the_engines_own_thread(cy):
    handle = cy.submit("a", max_new_tokens=2)
    closed = threading.Event()
    handle.future.add_done_callback(lambda _: (cy.close(), closed.set()))
    assert handle.result(SOON).text == "bc" and closed.wait(SOON)
    cy.worker.thread.join(SOON)
    assert not cy.worker.thread.is_alive()


def test_leaving_a_with_block_by_an_error_closes(cy):
    handle = None
    with pytest.raises(RuntimeError, match="mine"), cy:
        handle = cy.submit("a", max_new_tokens=500)
        raise RuntimeError("mine")
    assert handle.result(SOON).finish_reason in ("cancelled", "length")
    assert not cy.worker.thread.is_alive()


# ------------------------------------------------------------------------- nobody refers to it
def test_a_model_that_nobody_refers_to_ends():
    lm = build()
    lm.generate([1], max_new_tokens=2)
    list(lm.stream([1], max_new_tokens=2))
    next(lm.steps([1], max_new_tokens=2)).top(1)
    lm.next([1])
    thread, model = lm.worker.thread, weakref.ref(lm.model)
    del lm
    gc.collect()
    thread.join(SOON)
    assert not thread.is_alive()
    gc.collect()
    assert model() is None


def test_a_handle_is_enough_to_keep_a_model():
    handle = build().submit([1], max_new_tokens=50)
    steps = build().steps([1], max_new_tokens=3)
    gc.collect()
    assert handle.result(SOON).finish_reason == "length"
    assert [step.id for step in steps] == [2, 3, 4]


EXIT = """
import sys
sys.path[:0] = [{tests!r}]
import models_zoo as zoo
from unspool.llm.facts import Facts
from unspool.llm.llm import LLM
from unspool.memories import MEMORIES

def build():
    model = zoo.markov(zoo.cycle(12))
    return LLM(model, Facts("tiny", "reference", 12, 512), MEMORIES["dense"](model.context))

lm = build()
{what}
print("left", flush=True)
"""


@pytest.mark.parametrize(
    "what",
    [
        "handles = [lm.submit([1], max_new_tokens=500, n=8) for _ in range(20)]",
        "steps = lm.steps([1], max_new_tokens=500); next(steps)",
        "events = lm.stream([1], max_new_tokens=500); next(events)",
        "import asyncio; asyncio.run(asyncio.wait_for(lm.submit([1], max_new_tokens=2).wait(), 9))",
        "lm.submit([1], max_new_tokens=500); del lm",
    ],
)
def test_the_interpreter_ends_with_a_running_job(what):
    code = EXIT.format(tests=str(TESTS), what=what)
    root = str(TESTS.parent)
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": root},
    )  # fmt: skip
    assert (ran.returncode, ran.stdout.strip(), ran.stderr) == (0, "left", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_is_told_to_load_its_own():
    lm = build()
    lm.generate([1], max_new_tokens=2)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            lm.generate([1], max_new_tokens=2)
            os.write(write, b"no error")
        except BaseException as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        assert "forked" in said.read()
    os.waitpid(child, 0)
    assert lm.generate([1], max_new_tokens=2).token_ids == [2, 3]
    lm.close()


# -------------------------------------------------------------------------------------- faults
class Failing(Scheduler):
    """Fails in the middle of the engine's step, where no single job is at fault."""

    failures = 1

    def admit(self, jobs, runner):
        if Failing.failures:
            Failing.failures -= 1
            raise MemoryError("no room for the turns")
        return super().admit(jobs, runner)


def test_a_fault_of_the_engine_ends_its_jobs_and_not_its_thread():
    Failing.failures = 1
    with build(Failing()) as lm:
        outputs = lm.generate([[1], [2]], max_new_tokens=3)
        assert [type(o.error) for o in outputs] == [MemoryError] * 2
        assert [o.finish_reason for o in outputs] == ["error"] * 2
        assert lm.generate([1], max_new_tokens=3).token_ids == [2, 3, 4]
        assert lm.worker.loop.engine.jobs == []


# --------------------------------------------------------------------------------------- batch
def test_a_batch_begins_with_one_step_and_shares_every_forward():
    """5 prompts x 24 tokens need 24 forwards, the first of which reads the prompts."""
    with build() as lm:
        outputs = lm.generate([[i] for i in range(5)], max_new_tokens=24)
        assert [len(o.token_ids) for o in outputs] == [24] * 5
        assert lm.worker.loop.engine.runner.forwards == 24
        assert all(o.usage.forwards == 24 for o in outputs)
        list(lm.stream([[i] for i in range(5)], max_new_tokens=24))
        assert lm.worker.loop.engine.runner.forwards == 48


def test_one_thread_serves_all_and_only_when_there_is_something_to_do():
    before = len(engine_threads())
    with build() as lm:
        assert len(engine_threads()) == before
        for _ in range(3):
            lm.generate([1], max_new_tokens=2)
            lm.next([1])
        assert len(engine_threads()) == before + 1
    assert len(engine_threads()) == before
