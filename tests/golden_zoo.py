"""Rows shaped by what a request asks for, without a model: from parameters to what is left."""
import numpy as np
from rules_zoo import lefts, logs

from unspool.core.history import history
from unspool.core.prefix import Candidate
from unspool.llm.facts import Facts
from unspool.llm.resolve import resolve
from unspool.rules.plain import Seat


def resolved(params, prompt, vocab, ends=(), words=None, defaults=None):
    facts = Facts("golden", "reference", vocab, 4096, words, frozenset(ends), defaults or {})
    return resolve(facts, list(prompt), params)


def seat(rules, prompt, written=(), processed=(), place=None):
    """Where a text stands. `processed`: the log-probability that each written token had."""
    text = history(prompt)
    states = [rule.start(prompt) for rule in rules]
    for i, token in enumerate(written):
        fact = Candidate(token, -1.0, processed[i] if processed else -1.0, 1, -1.0)
        states = [rule.after(state, token, fact)
                  for rule, state in zip(rules, states, strict=True)]
        text = text.extend(token)
    return Seat(tuple(rules), tuple(states), text, place or (0, 0, text.length, 0))


def shaped(params, rows, prompts, writtens=None, dtype=np.float64, **facts):
    """Log-probabilities [R, V] of what a request with these parameters leaves of each row."""
    rows = np.asarray(rows, dtype)
    writtens = [()] * len(rows) if writtens is None else writtens
    rules = resolved(params, prompts[0], rows.shape[1], **facts).request.rules
    seats = [seat(rules, prompt, written)
             for prompt, written in zip(prompts, writtens, strict=True)]
    return np.stack([logs(left, rows.shape[1]) for left in lefts(rows, seats)])


def one(params, row, prompt=(0,), written=(), dtype=np.float64, **facts):
    """The same for one row [V], as probabilities."""
    return np.exp(shaped(params, [row], [list(prompt)], [list(written)], dtype, **facts)[0])
