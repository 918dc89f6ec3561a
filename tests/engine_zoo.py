"""Runs requests through a bare engine, with a limit on its steps: a law that hangs says nothing."""
from unspool.engine.engine import Engine
from unspool.memories import MEMORIES

STEPS = 500


def run(model, *requests, memory="dense", joins=(), scheduler=None):
    """Answer all requests in one engine; those in `joins` come three steps later."""
    engine = Engine(model, MEMORIES[memory](model.context), scheduler)
    jobs = [engine.add(request) for request in requests]
    for step in range(STEPS):
        if step == 3:
            jobs += [engine.add(request) for request in joins]
        if not engine.jobs and step > 3:
            break
        engine.step()
    assert not engine.jobs, f"more than {STEPS} steps"
    faults = [job.error for job in jobs if job.error is not None]
    assert not faults, repr(faults[0])
    assert not engine.runner.held and not engine.readers, "a text that is over still holds a lease"
    return jobs
