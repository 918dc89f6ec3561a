"""What a request's mixes and rules make of a given text, by their definitions: a plain forward of
each reader over the whole of it, and then row after row in float64. Knows no engine."""
from __future__ import annotations

import numpy as np
from models_zoo import span
from subjects import OTHER, Subject

from unspool.core.history import history
from unspool.core.schedule import at
from unspool.core.sockets import Heard
from unspool.engine.row import Row
from unspool.kernels.reading.logits import logits_of
from unspool.kernels.reading.philox import draw
from unspool.rules.plain import Seat


def truth(subject: Subject, request, text, diary=None, model=None):
    """Teacher-forced log-probabilities of each token, before the rules and after them.

    `request`: with names in its voices. `diary`: the stage and the choice of each token.
    """
    rows = mixed_rows(subject, request, text, stages_of(text, diary), model or subject.model())
    raw, processed = [], []
    states = tuple(r.start(request.prompt) for r in request.rules)
    past, before = history(request.prompt), 0
    for row, token, (stage, choice, step) in zip(rows, text, stages_of(text, diary), strict=True):
        for begun in range(before + 1, stage + 1):
            states = entered(request, begun, states, past.everything)
        before, places = stage, in_force(request, stage)
        rules = [at(request.rules[i], step) for i in places]
        wide = row.astype(np.float64)
        peak = wide.max()
        raw.append(float(wide[token] - peak - np.log(np.exp(wide - peak).sum())))
        made = Row(logits_of(wide[None]), 0, Seat(
            tuple(rules), tuple(states[i] for i in places), past,
            (request.seed, choice, past.length, draw("pick"))))
        fact = made.candidate(token)
        processed.append(fact.processed)
        past = past.extend(token)
        after = {i: rule.after(states[i], token, fact)
                 for i, rule in zip(places, rules, strict=True)}
        states = tuple(after.get(i, state) for i, state in enumerate(states))
    return raw, processed


def stages_of(text, diary):
    """(stage, choice, step in the stage) of each token."""
    diary = diary or [(0, 0)] * len(text)
    stages = [stage for stage, _ in diary]
    return [(stage, choice, i - stages.index(stage)) for i, (stage, choice) in enumerate(diary)]


def in_force(request, stage):
    places = request.stages[stage].rules
    return range(len(request.rules)) if places is None else places


def entered(request, stage, states, text):
    """Rules that the stage before did not have begin on the whole text; others go on."""
    fresh = set(in_force(request, stage)) - set(in_force(request, stage - 1))
    return tuple(at(rule, 0).start(text) if i in fresh else state
                 for i, (rule, state) in enumerate(zip(request.rules, states, strict=True)))


def mixed_rows(subject, request, text, stages, model):
    """[len(text), V]: the model's row before each token, after the mixes in force there."""
    layers = tuple(sorted({layer for mix in request.mixes for layer in mix.layers}))
    own, inner = forward(model, request.prompt, text, layers)
    others = [[forward(subject.other if voice.model == OTHER else model,
                       request.prompt if voice.prompt is None else voice.prompt, text)[0]
               for voice in mix.voices] for mix in request.mixes]
    out = []
    for i, (stage, _, step) in enumerate(stages):
        row, written = own[i:i + 1].astype(np.float64), list(text[:i])
        mixes = request.stages[stage].mixes
        for place in range(len(request.mixes)) if mixes is None else mixes:
            mix = at(request.mixes[place], step)
            row = mix.blend(Heard(
                row, [o[i:i + 1].astype(np.float64) for o in others[place]],
                {j: inner[j][i:i + 1].astype(np.float64) for j in mix.layers},
                [[*request.prompt, *written]] if mix.reads_text else []))
        out.append(row[0].astype(own.dtype))
    return out


def forward(model, prompt, text, layers=()):
    """Of one reader, in one forward without a memory: the rows before each token, inner ones too.
    """
    asked = span([*prompt, *text[:-1]], rows=len(text))
    asked.layers = layers
    scores = model.score([asked])
    return np.array(scores.rows()), {j: np.array(scores.inner(0, j)) for j in layers}
