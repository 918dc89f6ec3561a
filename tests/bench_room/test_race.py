"""Rounds: who is asked what and when, and who is left out."""

import pytest

from unspool.bench.points import Measure, Point
from unspool.bench.prompts import Prompts
from unspool.bench.race import Track, race
from unspool.bench.runner import Runner

# Tells each request to a file that all engines share; writes token 7 as often as `new` says.
TELLING = """
def load(settings):
    def write(prompts, new, sampled):
        with open({log!r}, "a") as file:
            print({name!r}, len(prompts), len(prompts[0]), new, sampled, file=file)
        clock = Clock(len(prompts))
        for _ in range({short} or new):
            time.sleep(0.001)
            clock.step()
        return clock.answer([[7] * ({short} or new)] * len(prompts))
    return {{}}, {{"write": write, "read": lambda: {{"here": [10.0]}}}}
"""
MEASURE = Measure("batch", (Point("1", 1, 1, 4, 5), Point("2", 2, 2, 4, 3)), "2", 4, "texts")


class Words:
    def encode(self, text, *, start):
        return list(range(50))


@pytest.fixture
def run(engine, lines, tmp_path):
    log = tmp_path / "log"
    log.touch()

    def go(sampled=False, rounds=2, **short):
        made = [engine(TELLING.format(log=str(log), name=name, short=count), name)
                for name, count in short.items()]
        with Runner(lines.say) as runner:
            found = race(runner, made, [], Track(MEASURE, Prompts(Words()), rounds, sampled))
        return found, runner, log.read_text().splitlines()

    return go


def test_engines_take_turns_after_they_are_warm(run):
    found, _, log = run(a=0, b=0)
    warm = ["1 4 4 False", "1 4 2 False", "2 4 2 False"]
    turn = ["1 4 5 False", "2 4 3 False"]
    expected = [f"{name} {line}" for name in "ab" for line in warm]
    expected += [f"{name} {line}" for _ in range(2) for name in "ab" for line in turn]
    assert log == expected
    assert {name: {label: len(samples) for label, samples in points.items()}
            for name, points in found.samples.items()} == {
        "a": {"1": 2, "2": 2}, "b": {"1": 2, "2": 2}}
    assert found.texts == {"a": [7] * 4, "b": [7] * 4}


def test_sampling_is_for_all_but_the_text_that_is_compared(run):
    _, _, log = run(sampled=True, rounds=1, a=0)
    assert [line.split()[-1] for line in log] == ["False", "True", "True", "True", "True"]


def test_an_engine_that_writes_less_is_left_out(run):
    found, runner, _ = run(a=0, b=2)
    assert found.samples.keys() == {"a"}
    assert runner.missing == {
        "b": "asked for 1 texts of 4 tokens, it wrote 1 of [2]"}


def test_readers_take_part_in_every_round(engine, lines, tmp_path):
    reading = engine("""
def load(settings):
    return {"missing": {"far": "ImportError: far"}}, {"read": lambda: {"here": [10.0, 11.0]}}
""", "readers")
    with Runner(lines.say) as runner:
        found = race(runner, [], [reading], Track(MEASURE, Prompts(Words()), 3))
    assert found.read == {"here": [10.0, 11.0] * 3}
    assert found.unread == {"far": "ImportError: far"} and not found.samples
