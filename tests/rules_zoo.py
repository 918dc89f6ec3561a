"""Every rule with values worth trying, and rows shaped by rules without a model or a job.

Each area of rules has a file `rules_samples_*.py` with SAMPLES, weak to strong, and NEUTRAL, values
that change nothing.
"""
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np

from unspool.core.history import history
from unspool.engine.row import Row
from unspool.engine.shape import shape, shaped
from unspool.kernels.reading.logits import logits_of
from unspool.rules.plain import Seat
from unspool.rules.rule import place_of_noise

SAMPLES, NEUTRAL = {}, {}
for path in sorted(Path(__file__).parent.glob("rules_samples_*.py")):
    area = import_module(path.stem)
    for ours, theirs in ((SAMPLES, area.SAMPLES), (NEUTRAL, area.NEUTRAL)):
        twice = ours.keys() & theirs.keys()
        assert not twice, f"{path.name}: {sorted(twice)} stand in another file too"
        ours.update(theirs)
EVERY = [sample for name in sorted(SAMPLES) for sample in SAMPLES[name]]


# ── rows shaped by rules that remember nothing ───────────────────────────────────────────────────
def plainly(*rules):
    """A seat without a text."""
    return Seat(rules, (None,) * len(rules))


def left(row, *rules, dtype=np.float64):
    """What the rules leave of one row; in float32 it is shaped by kernels."""
    group, place = shaped(logits_of(np.asarray(row, dtype)[None]), 0, plainly(*rules))
    return group.left(place)


def kept(row, *rules, dtype=np.float64):
    return sorted(left(row, *rules, dtype=dtype).ids.tolist())


def probabilities(row, *rules, dtype=np.float64):
    return np.exp(logs(left(row, *rules, dtype=dtype), len(row)))


def logs(left, size):
    """Log-probabilities [size] of what is left, -inf of what is not."""
    out = np.full(size, -np.inf)
    out[left.ids] = left.values - left.norm
    return out


def lefts(rows, seats):
    """What is left of each of `rows` [R, V], shaped in one call."""
    return [group.left(place)
            for group, place in shape(logits_of(rows), range(len(seats)), seats)]


# ── rows of every kind ───────────────────────────────────────────────────────────────────────────
KINDS_OF_ROWS = ("flat", "normal", "peaked", "ties", "removed")


def rows_of(kind, count, size, seed=0):
    """Rows [count, size] in float32; at least one token is left in each."""
    draw = np.random.default_rng([seed, size])
    if kind == "ties":
        return draw.integers(-4, 5, (count, size)).astype(np.float32)
    rows = draw.normal(0, {"flat": 0.1, "peaked": 6.0}.get(kind, 2.0), (count, size))
    if kind == "removed":
        rows[draw.random(rows.shape) < 0.7] = -np.inf
        rows[:, size // 2] = 0.5
    return rows.astype(np.float32)


# ── seats of branches that have come some way ────────────────────────────────────────────────────
def seat_of(rules, vocab, seed=0, tokens=4, wanted=True):
    """Where a branch is after a prompt and some tokens written under the rules, drawn from random
    rows. Some few tokens come again and again, as in a text that repeats itself."""
    draw = np.random.default_rng([seed, vocab])
    often = min(vocab, 5)
    text = history(draw.integers(0, often, 14).tolist())
    seat = Seat(rules, tuple(rule.start(text.everything) for rule in rules), text, None, True)
    for _ in range(tokens):
        values = draw.normal(0, 1, (1, vocab))
        values[0, :often] += 3
        row = Row(logits_of(values), 0, placed(seat, seed))
        if row.empty:
            break
        fact = row.candidate(row.pick[0])
        states = tuple(rule.after(state, fact.token, fact)
                       for rule, state in zip(rules, seat.states, strict=True))
        seat = replace(seat, states=states, history=seat.history.extend(fact.token))
    return replace(placed(seat, seed), wanted=wanted)


def placed(seat, seed):
    """The seat with its noise at the end of its text."""
    place = (seed, 0, seat.history.length, 0)
    return replace(seat, place=place_of_noise(seat.rules, seat.history, place))
