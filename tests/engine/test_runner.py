"""The runner: what is read, what is leased, and what is counted."""
import numpy as np
import pytest
from models_zoo import logits, tiny

from unspool.core.branch import Ended
from unspool.core.edits import Draft, Extend
from unspool.core.errors import ParameterError
from unspool.core.job import Job
from unspool.core.prefix import Candidate
from unspool.core.request import Request
from unspool.engine.runner import Runner
from unspool.memories import Dense, Nothing
from unspool.strategies import Sample

MODEL = tiny(vocab_size=24)
PROMPT = (1, 2, 3, 4, 5)


def fact(token):
    return Candidate(token, -1.0, -1.0, 1, -1.0)


def job_of(prompt=PROMPT, n=1, **fields):
    return Job(Request(prompt, Sample(n), **fields))


def forward(runner, job, budget=512, branch=None):
    turn = runner.turn(job, [branch or job.branches[0]], budget)
    return turn, runner.score([turn]).rows()


def test_a_prompt_is_read_and_then_only_what_is_new():
    runner, job = Runner(MODEL, Dense()), job_of()
    [branch] = job.branches
    turn, rows = forward(runner, job)
    assert (turn.start, turn.upto, turn.rows, turn.scored) == (0, 5, 1, True)
    assert rows == pytest.approx(logits(MODEL, PROMPT)[-1:].numpy(), abs=1e-10)
    job.apply([Extend(branch, fact(6))])
    turn, rows = forward(runner, job)
    assert (turn.start, turn.upto, turn.rows) == (5, 6, 1)
    assert rows == pytest.approx(logits(MODEL, [*PROMPT, 6])[-1:].numpy(), abs=1e-10)
    usage = job.usage
    assert (usage.computed, usage.forwards, usage.cached, runner.forwards) == (6, 2, 0, 2)


def test_a_draft_has_a_row_behind_each_of_its_tokens():
    runner, job = Runner(MODEL, Dense()), job_of()
    job.apply([Draft(job.branches[0], (7, 8, 9))])
    turn, rows = forward(runner, job)
    assert (turn.upto, turn.rows) == (8, 4)
    assert rows == pytest.approx(logits(MODEL, [*PROMPT, 7, 8, 9])[-4:].numpy(), abs=1e-10)


def test_a_rejected_draft_is_not_read_again_and_not_believed():
    runner, job = Runner(MODEL, Dense()), job_of()
    [branch] = job.branches
    job.apply([Draft(branch, (7, 8, 9))])
    forward(runner, job)
    job.apply([Extend(branch, fact(7)), Extend(branch, fact(2))])
    turn, rows = forward(runner, job)
    assert (turn.start, turn.upto) == (6, 7)
    assert rows == pytest.approx(logits(MODEL, [*PROMPT, 7, 2])[-1:].numpy(), abs=1e-10)


def test_a_long_text_is_read_in_chunks_and_scored_at_its_end():
    runner, job = Runner(MODEL, Dense()), job_of(tuple(range(20)))
    turns = [forward(runner, job, 8) for _ in range(3)]
    assert [(t.start, t.upto, t.rows, t.scored) for t, _ in turns] == [
        (0, 8, 0, False), (8, 16, 0, False), (16, 20, 1, True)]
    assert [len(rows) for _, rows in turns] == [0, 0, 1]
    assert turns[2][1] == pytest.approx(logits(MODEL, range(20))[-1:].numpy(), abs=1e-10)
    assert job.usage.computed == 20 and job.usage.cached == 0


def test_a_known_prompt_counts_as_cached():
    runner = Runner(MODEL, Dense())
    first, again = job_of(tuple(range(20))), job_of(tuple(range(20)))
    forward(runner, first)
    runner.release(first.branches[0])
    turn, rows = forward(runner, again)
    assert (turn.start, again.usage.cached, again.usage.computed) == (19, 19, 1)
    assert rows == pytest.approx(logits(MODEL, range(20))[-1:].numpy(), abs=1e-10)


@pytest.mark.parametrize("how", ["memory", "request"])
def test_without_memory_the_text_is_read_whole_whatever_the_budget(how):
    runner = Runner(MODEL, Nothing() if how == "memory" else Dense())
    job = job_of(tuple(range(20)), remember=how == "memory")
    for _ in range(2):
        turn, rows = forward(runner, job, 3)
        assert (turn.start, turn.upto, turn.rows) == (0, 20, 1)
        assert rows == pytest.approx(logits(MODEL, range(20))[-1:].numpy(), abs=1e-10)
        assert runner.held == {}  # nor do its keys outlive the forward
    assert job.usage.computed == 40


def test_one_forward_reads_many_texts():
    runner = Runner(MODEL, Dense())
    jobs = [job_of(tuple(range(n))) for n in (3, 17, 1)]
    jobs[1].apply([Draft(jobs[1].branches[0], (1, 2))])
    turns = [runner.turn(job, job.branches, 512) for job in jobs]
    rows = runner.score(turns).rows()
    want = np.concatenate([logits(MODEL, range(3))[-1:], logits(MODEL, [*range(17), 1, 2])[-3:],
                           logits(MODEL, range(1))[-1:]])
    assert rows == pytest.approx(want, abs=1e-10)
    assert runner.forwards == 1 and [j.usage.forwards for j in jobs] == [1, 1, 1]


def test_branches_of_a_job_count_its_forward_once():
    runner, job = Runner(MODEL, Dense()), job_of(n=3)
    for branch in job.branches:
        job.apply([Extend(branch, fact(branch.choice))])
    runner.score([runner.turn(job, [b], 512) for b in job.branches])
    assert job.usage.forwards == runner.forwards == 1


def test_salts_share_nothing():
    runner = Runner(MODEL, Dense())
    one, other = job_of((1, 2) * 20), job_of((1, 2) * 20, salt="mine")
    forward(runner, one)
    runner.release(one.branches[0])
    assert forward(runner, other)[0].start == 0


@pytest.mark.parametrize("draft", [((1, 2), (-1, -1), "causal"), ((1, 2), None, "block")])
def test_a_draft_that_is_no_chain_is_refused(draft):
    runner, job = Runner(MODEL, Dense()), job_of()
    job.apply([Draft(job.branches[0], *draft)])
    with pytest.raises(ParameterError, match="not in this version"):
        forward(runner, job)
    assert runner.memory.buffers == {}


def test_what_is_released_is_held_by_nobody():
    memory = Dense()
    runner, job = Runner(MODEL, memory), job_of()
    [branch] = job.branches
    forward(runner, job)
    assert branch in runner.held and [b.held for b in memory.buffers.values()] == [True]
    runner.release(branch)
    runner.release(branch)  # a second time is nothing
    assert runner.held == {} and [b.held for b in memory.buffers.values()] == [False]


def test_what_a_failed_forward_left_is_distrusted():
    memory = Dense()
    runner, job = Runner(MODEL, memory), job_of()
    turn, _ = forward(runner, job)
    runner.distrust([turn])
    assert runner.held == {} and memory.buffers == {}
    assert forward(runner, job)[0].start == 0


def test_close_gives_all_back():
    memory, model = Dense(), tiny(vocab_size=24)
    runner, job = Runner(model, memory), job_of()
    forward(runner, job)
    job.end(Ended("cancelled"))
    runner.close()
    assert runner.held == {} and memory.buffers == {} and model.stack == []
