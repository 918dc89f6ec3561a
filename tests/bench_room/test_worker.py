"""Engines in processes of their own: what they answer, how they fail, what they leave behind."""

import time
from pathlib import Path

import pytest

from unspool.bench import worker
from unspool.bench.worker import Command, WorkerError, cpu_of_machine

ECHO = """
def load(settings):
    print("to nobody")
    return {"version": "1", "model": settings["model"]}, {"echo": lambda **asked: asked}
"""
linux = pytest.mark.skipif(not Path("/proc/stat").exists(), reason="told by Linux's /proc")


def test_an_engine_loads_once_and_answers(engine, started):
    it = started(engine(ECHO))
    assert it.facts == {"version": "1", "model": "none", "notes": []}
    assert 0 < it.load_s <= it.started_s
    assert it.ask("echo", a=[1, 2]) == {"a": [1, 2]}
    assert it.ask("echo", b="ü") == {"b": "ü"}


def test_what_cannot_be_done_is_an_error_and_the_engine_lives_on(engine, started):
    it = started(engine("""
def load(settings):
    return {}, {"half": lambda of: {"is": 1 / of}}
"""))
    with pytest.raises(WorkerError, match="ZeroDivisionError"):
        it.ask("half", of=0)
    with pytest.raises(WorkerError, match="KeyError"):
        it.ask("more")
    assert it.ask("half", of=4) == {"is": 0.25}


def test_an_engine_that_cannot_load_says_why(engine, started):
    with pytest.raises(WorkerError, match=r"^ValueError: no such file$"):
        started(engine("def load(settings):\n    raise ValueError('no such\\nfile')"))
    with pytest.raises(WorkerError, match=r"status 1: ModuleNotFoundError.*no_such_engine"):
        started(engine("import no_such_engine"))


def test_an_interpreter_that_is_not_there_is_a_reason(started):
    with pytest.raises(WorkerError, match="/no/such/python cannot be run: No such file"):
        started(Command("other", ("/no/such/python",), {}))


def test_an_engine_that_dies_is_told_by_its_last_words(engine, started):
    it = started(engine("""
def die(status):
    print("out of luck", file=sys.stderr, flush=True)
    os._exit(status)
def load(settings):
    return {}, {"die": die}
"""))
    with pytest.raises(WorkerError, match="other ended with status 7: out of luck"):
        it.ask("die", status=7)
    with pytest.raises(WorkerError):
        it.ask("die", status=7)


def test_an_engine_that_falls_silent_is_ended(engine, started, monkeypatch):
    it = started(engine("""
def load(settings):
    return {}, {"sleep": lambda: time.sleep(600)}
"""))
    monkeypatch.setattr(worker, "ANSWER_LIMIT_S", 0.2)
    with pytest.raises(WorkerError, match="no answer"):
        it.ask("sleep")
    assert it.process.returncode is not None


def test_closing_ends_the_children_too(engine, started, monkeypatch):
    monkeypatch.setattr(worker, "END_LIMIT_S", 0.2)
    it = started(engine("""
def load(settings):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    return {"child": child.pid}, {"sleep": lambda: time.sleep(600)}
"""))
    child = Path(f"/proc/{it.facts['child']}")
    it.close()
    assert it.process.returncode is not None
    deadline = time.monotonic() + 30
    while child.exists() and "\nState:\tZ" not in (child / "status").read_text():
        assert time.monotonic() < deadline, "the child still runs"
        time.sleep(0.01)


def test_the_environment_is_laid_over_this_one(engine, started, monkeypatch):
    monkeypatch.setenv("BENCH_GOES", "1")
    monkeypatch.setenv("BENCH_STAYS", "1")
    it = started(engine("""
def load(settings):
    return {"seen": sorted(name for name in os.environ if name.startswith("BENCH_"))}, {}
""", BENCH_GOES=None, BENCH_NEW="1"))
    assert it.facts["seen"] == ["BENCH_NEW", "BENCH_STAYS"]


@linux
def test_cpu_time_is_that_of_the_process_and_its_children(engine, started):
    it = started(engine("""
BUSY = "import time; end = time.process_time() + 0.3\\nwhile time.process_time() < end: pass\\n"
def load(settings):
    child = subprocess.Popen([sys.executable, "-c", BUSY + "print(flush=True); input()"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    return {}, {"work": lambda: {"line": child.stdout.readline().decode()}}
"""))
    it.ask("work")
    assert it.cpu_s() >= 0.3
    assert cpu_of_machine() >= it.cpu_s()
