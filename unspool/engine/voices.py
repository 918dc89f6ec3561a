"""Several readers of one text: their turns, planned so that all have their rows in the same step,
and the rows joined by the request's mixes."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.core.branch import Branch
from unspool.core.job import Job
from unspool.core.sockets import Heard, Mix
from unspool.core.stage import step_of
from unspool.engine.runner import OWN, Runner, Turn
from unspool.engine.scored import Scored

Rows = NDArray[np.floating[Any]]  # [S, V], one for each open slot
EVERYTHING = 2**40  # tokens
Key = tuple[Branch, int]  # a branch and the voice that reads it


def turns_of(runner: Runner, job: Job, branches: list[Branch], budget: int) -> list[Turn]:
    """The turns of the next forward for these branches: the request's own reader's, then those of
    the voices in force. A voice that only waits for the others has none.

    Raises what is wrong with the text for one of the readers; then nothing is held.
    """
    force = job.force(branches[0])
    if not any(force.voices):
        return [runner.turn(job, branches, budget)]
    turns: list[Turn] = []
    try:
        turns.append(runner.turn(job, branches, EVERYTHING))
        voices = job.request.voices
        for place in (p for places in force.voices for p in places):
            other: Runner = voices[place].model or runner
            turns.append(other.turn(job, branches, EVERYTHING, place))
    except BaseException:
        for turn in turns:
            turn.runner.distrust([turn])
        raise
    return limited(turns, budget)


def limited(turns: list[Turn], budget: int) -> list[Turn]:
    """All whole, if what is missing fits; else a chunk of each, none up to its open slots."""
    missing = [t.text.length - t.start - t.slots if t.memory.keeps else 0 for t in turns]
    if sum(missing) <= max(budget - sum(t.slots for t in turns), 0):
        return turns
    for turn, count in zip(turns, missing, strict=True):
        read = min(count, budget) if turn.memory.keeps else 0
        budget -= read
        turn.upto = turn.start + read
    for turn in turns:
        if turn.upto == turn.start:
            turn.runner.hold(turn)
    return [turn for turn in turns if turn.upto > turn.start]


def mixes_of(turn: Turn) -> tuple[Mix, ...]:
    """Those in force for a turn's branches."""
    return turn.job.force(turn.branches[0]).mixes


def rows_by_voice(part: Scored) -> dict[Key, Rows]:
    """A copy of the rows of each turn that has its slots, and whose request joins them."""
    return {(turn.branches[0], turn.voice): part.logits.values[first:first + turn.rows].copy()
            for turn, first in part.placed() if turn.rows and mixes_of(turn)}


def mixed(turn: Turn, heard: Mapping[Key, Rows]) -> Rows:
    """[S, V]: the rows of a request's own turn after its mixes, in the type of the model's rows.

    Raises what a mix raises, KeyError where a voice could not be read.
    """
    job, branch = turn.job, turn.branches[0]
    force = job.force(branch)
    own = heard[branch, OWN]
    others = [[heard[branch, place].astype(np.float64) for place in places]
              for places in force.voices]
    if force.mixed_steadily:
        out = joined(force.mixes, others, own.astype(np.float64), turn, range(turn.slots))
    else:
        out = np.concatenate([
            joined(force.mixed(step_of(branch, i)), [[o[i:i + 1] for o in one] for one in others],
                   own[i:i + 1].astype(np.float64), turn, range(i, i + 1))
            for i in range(turn.slots)])
    return out.astype(own.dtype)


def joined(mixes: Sequence[Mix], others: Sequence[Sequence[Rows]], own: Rows, turn: Turn,
           slots: range) -> Rows:
    """Some of the rows after all mixes; each mix works on what the one before made."""
    branch = turn.branches[0]
    for mix, rows in zip(mixes, others, strict=True):
        texts = []
        if mix.reads_text:
            before = branch.settled.tokens()
            texts = [before + list(branch.draft[:i]) for i in slots]
        inner = {j: turn.inner[j][slots.start:slots.stop].astype(np.float64) for j in mix.layers}
        own = np.asarray(mix.blend(Heard(own, rows, inner, texts)), np.float64)
    return own
