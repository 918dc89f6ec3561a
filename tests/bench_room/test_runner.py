"""Who takes part, who is left out and why, and who disturbed."""

from pathlib import Path

import pytest

from unspool.bench.runner import Runner

CALM = """
def load(settings):
    return {}, {"wait": lambda s: {"slept": time.sleep(s)}, "fail": lambda: 1 / 0}
"""
RESTLESS = """
from threading import Thread
def spin():
    while True: pass
def load(settings):
    Thread(target=spin, daemon=True).start()
    return {}, {}
"""


def test_what_fails_is_left_out_with_its_reason(engine, lines):
    with Runner(lines.say) as runner:
        assert runner.start(engine(CALM, "calm"))
        assert runner.start(engine("import no_such_engine", "absent")) is None
        assert runner.ask("calm", "wait", s=0) == {"slept": None}
        assert runner.ask("absent", "wait", s=0) is None
        assert runner.ask("calm", "fail") is None
        assert runner.ask("calm", "wait", s=0) is None
        assert not runner.workers
        assert runner.missing["calm"].startswith("ZeroDivisionError")
        assert "no_such_engine" in runner.missing["absent"]
    assert lines.said[0] == "loading calm"


def test_every_engine_is_ended_whatever_happens(engine, lines):
    with pytest.raises(KeyboardInterrupt), Runner(lines.say) as runner:
        worker = runner.start(engine(CALM, "calm"))
        raise KeyboardInterrupt
    assert worker.process.returncode is not None


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="told by Linux's /proc")
def test_a_waiting_engine_that_spins_is_noted(engine, lines):
    with Runner(lines.say) as runner:
        runner.start(engine(CALM, "calm"))
        runner.start(engine(RESTLESS, "restless"))
        runner.ask("calm", "wait", s=1.1)
        noted = [note for note in runner.notes() if "while it waited" in note]
    assert len(noted) == 1 and noted[0].startswith("restless used ")


def test_notes_name_what_disturbed_and_nothing_else(lines):
    runner = Runner(lines.say)
    runner.watched_s, runner.idle = 10.0, {"a": 0.4, "b": 0.6}
    assert runner.notes() == ["b used 6% of a core while it waited"]
    runner.idle, runner.foreign = {}, 1e6
    assert "quiet machine" in runner.notes()[0]
    runner.watched_s = 0.5
    assert runner.notes() == []
