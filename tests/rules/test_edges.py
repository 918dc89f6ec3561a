"""Every rule at every edge: rows of few or equal or huge logits, removed and padded tokens, tiny
and odd vocabularies, extreme values of the rule, rows that are damaged or lose every token.

Each case is shaped by the operation (float32) and by the definition (float64), the rule alone and
before and after a temperature.
"""
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from rules_zoo import EVERY, NEUTRAL, kept, logs, probabilities, seat_of

from unspool import rules
from unspool.core.errors import RowError
from unspool.core.job import Job
from unspool.core.request import Request
from unspool.engine.read import Open, read
from unspool.engine.row import Row
from unspool.engine.shape import shape
from unspool.kernels.reading.logits import logits_of
from unspool.kernels.shaping.row import CUT
from unspool.rules import KINDS, suppress, temperature
from unspool.strategies import Sample

INF, SMALL = np.inf, 12
WAYS = pytest.mark.parametrize("dtype", [np.float32, np.float64])  # by kernels, by definition


def only(alive, vocab=SMALL, rest=-INF):
    """A row in which all tokens but some are alike."""
    row = np.full(vocab, rest)
    for token, value in alive.items():
        row[token] = value
    return row


def noise(vocab, seed=0):
    return np.random.default_rng([seed, vocab]).normal(0, 2, vocab)


EDGES = {
    "one token left": only({5: 0.7}), "the first token left": only({0: -3.0}),
    "two tokens left": only({3: 0.5, 9: -1.0}), "two equal tokens left": only({2: 0.5, 9: 0.5}),
    "half removed": np.where(np.arange(SMALL) % 2, noise(SMALL), -INF),
    "padded": np.append(noise(SMALL), [-INF] * 9), "ties": np.array([1.0, 2.0, 1.0, 2.0] * 3),
    "all equal": np.zeros(SMALL), "all equal, low": np.full(SMALL, -80.0),
    "sure": only({4: 60.0}, rest=0.0), "tiny": noise(SMALL) * 1e-40,
    "huge": only({4: 1e30, 7: 9e29}, rest=1.0), "far apart": only({3: 1e30, 8: -1e30}),
    "huge and negative": only({4: -1e30, 6: -1e30}, rest=1.0),
    **{f"{n} tokens": noise(n) for n in (1, 2, 3, 7, 8, 9, 63, 64, 65, 1024, 1025)},
}
ORDERS = {
    "alone": lambda rule: (rule,),
    "before": lambda rule: (rule, temperature(0.7)),
    "after": lambda rule: (temperature(0.7), rule),
    "before a hot one": lambda rule: (rule, temperature(1000)),
    "after a hot one": lambda rule: (temperature(1000), rule),
}
# Rules that may give a token that was removed: forced ones, where a function's tokens are the only
# ones, where the end of an infill is, and what a function of the user's makes of it.
REVIVE = {"forced_first", "forced_last", "prefix_allowed", "infill", "custom"}
# Rules that may remove every token: those that name what goes or stays, or force what is not there.
MAY_EMPTY = {"allowed_ids", "bad_words", "begin_suppress", "constrain", "custom", "forced_first",
             "encoder_no_repeat_ngram", "forced_last", "logit_bias", "min_length", "suppress",
             "min_new_tokens", "no_repeat_ngram", "prefix_allowed"}
CUTS = {name for name, kind in KINDS.items() if kind.operation and kind.operation.kind == CUT}
ALL_GONE = suppress(data=tuple(range(SMALL)))


@cache
def seat(rule, vocab, tokens):
    """A branch so many tokens on, where the rule alone shapes."""
    return seat_of((rule,), vocab, tokens=tokens)


def within(rule, vocab, recipe, tokens=6):
    """The same where the rule is one of a recipe: the others remember nothing."""
    own = seat(rule, vocab, tokens)
    states = tuple(own.states[0] if r is rule else None for r in recipe)
    return replace(own, rules=recipe, states=states)


@cache
def cases(edge, dtype):
    """(rule, recipe, what is left, the pick) of every sample in every order, at the first written
    token and six on."""
    row = EDGES[edge].astype(np.float32).astype(dtype)
    orders = ORDERS.values() if len(row) < 200 else [ORDERS["alone"]]
    every = [(rule, order(rule)) for order in orders for rule in EVERY] * 2
    seats = [within(rule, len(row), recipe, 0 if i < len(every) // 2 else 6)
             for i, (rule, recipe) in enumerate(every)]
    placed = shape(logits_of(np.tile(row, (len(seats), 1))), range(len(seats)), seats)
    return [(rule, recipe, group.left(i), None if group.empty(i) else group.pick(i))
            for (rule, recipe), (group, i) in zip(every, placed, strict=True)]


@WAYS
@pytest.mark.parametrize("edge", EDGES)
def test_what_is_left_is_a_distribution_of_tokens_that_were_there(edge, dtype):
    """Finite values, probabilities that add up to 1, a pick that is one of them; what was removed
    or is padding stays so, whatever the rule, but for those named above."""
    there = set(np.flatnonzero(np.isfinite(EDGES[edge])).tolist())
    for rule, recipe, left, pick in cases(edge, dtype):
        what, ids = str([*map(str, recipe)]), left.ids.tolist()
        assert len(set(ids)) == len(ids) and all(0 <= i < len(EDGES[edge]) for i in ids), what
        assert np.isfinite(left.values).all(), what
        assert rule.name in REVIVE or set(ids) <= there, what
        if pick is None:
            assert not ids and rule.name in MAY_EMPTY, what
            continue
        p = np.exp(left.values - left.norm)
        assert p.sum() == pytest.approx(1, abs=1e-9), what
        assert pick[0] in ids and pick[1] == pytest.approx(np.log(p[ids.index(pick[0])])), what


@pytest.mark.parametrize("edge", EDGES)
def test_operation_and_definition_agree(edge):
    vocab = len(EDGES[edge])
    for fast, plain in zip(cases(edge, np.float32), cases(edge, np.float64), strict=True):
        a, b = (np.exp(logs(case[2], vocab)) for case in (fast, plain))
        assert a == pytest.approx(b, abs=2e-5), [*map(str, fast[1])]


# ── values that can be told in advance ───────────────────────────────────────────────────────────
@WAYS
@pytest.mark.parametrize("edge", ["one token left", "the first token left", "1 tokens"])
def test_one_token_is_sure(edge, dtype):
    """And no rule but those that may leave none takes it."""
    [there] = np.flatnonzero(np.isfinite(EDGES[edge]))
    for rule, recipe, left, _ in cases(edge, dtype):
        if rule.name not in REVIVE and len(left.ids):
            assert left.ids.tolist() == [there], [*map(str, recipe)]
            assert left.values[0] - left.norm == pytest.approx(0, abs=1e-12)


@WAYS
@pytest.mark.parametrize("edge", EDGES)
def test_a_neutral_value_keeps_every_token(edge, dtype):
    """Also those that are next to impossible."""
    row = EDGES[edge].astype(np.float32)[None].astype(dtype)
    for rule in NEUTRAL.values():
        left = Row(logits_of(row), 0, within(rule, row.size, (rule,))).shaped
        assert sorted(left.ids.tolist()) == np.flatnonzero(np.isfinite(row[0])).tolist(), str(rule)


@WAYS
def test_a_forced_token_comes_back_and_no_padding_beside_it(dtype):
    row = EDGES["padded"].astype(np.float32)[None].astype(dtype)
    first, last = rules.forced_first(data=(15,)), rules.forced_last(21, data=(15,))
    for rule, tokens in ((first, 0), (last, 6)):
        left = Row(logits_of(row), 0, within(rule, row.size, (rule,), tokens)).shaped
        assert left.ids.tolist() == [15] and left.values[0] == left.norm


@WAYS
@pytest.mark.parametrize("edge", EDGES)
def test_a_cut_keeps_a_range_of_the_order(edge, dtype):
    """By value, of equal ones the lower id first; and it changes no odds within the range."""
    row = EDGES[edge].astype(np.float32)
    order = np.argsort(-row, kind="stable").tolist()
    for rule, recipe, left, _ in cases(edge, dtype):
        if rule.name in CUTS and recipe == (rule,):
            places = sorted(map(order.index, left.ids.tolist()))
            assert places == list(range(places[0], places[0] + len(places))), str(rule)
            assert rule.name in ("typical_p", "xtc") or places[0] == 0, str(rule)
            p = np.exp(left.values - left.norm)
            alike = np.exp(row[left.ids].astype(float) - row[left.ids].max())
            assert p == pytest.approx(alike / alike.sum(), abs=1e-6), str(rule)


FALLING = np.log([0.4, 0.3, 0.2, 0.1])
EQUAL = np.zeros(4)
WANT = [  # a rule, what it keeps of FALLING, what it keeps of EQUAL
    (rules.greedy(), [0], [0]),
    (rules.top_k(0), [0, 1, 2, 3], [0, 1, 2, 3]), (rules.top_k(-1), [0, 1, 2, 3], [0, 1, 2, 3]),
    (rules.top_k(1), [0], [0]), (rules.top_k(10**9), [0, 1, 2, 3], [0, 1, 2, 3]),
    (rules.top_k(2), [0, 1], [0, 1]), (rules.top_k(2, 1), [0, 1], [0, 1, 2, 3]),
    (rules.top_p(0), [0], [0]), (rules.top_p(1e-9), [0], [0]), (rules.top_p(0.5), [0, 1], [0, 1]),
    (rules.top_p(1), [0, 1, 2, 3], [0, 1, 2, 3]),
    (rules.min_p(0), [0, 1, 2, 3], [0, 1, 2, 3]), (rules.min_p(1), [0], [0, 1, 2, 3]),
    (rules.typical_p(0), [1], [0]), (rules.typical_p(0.5), [1, 2], [0, 1]),
    (rules.typical_p(0.5, 1), [1, 2], [0, 1, 2, 3]),
    (rules.typical_p(1), [0, 1, 2, 3], [0, 1, 2, 3]),
    (rules.epsilon_cutoff(0), [0, 1, 2, 3], [0, 1, 2, 3]),
    (rules.epsilon_cutoff(0.19), [0, 1, 2], [0, 1, 2, 3]),
    (rules.epsilon_cutoff(1), [0], [0, 1, 2, 3]),
    (rules.eta_cutoff(0), [0, 1, 2, 3], [0, 1, 2, 3]),
    (rules.eta_cutoff(1), [0, 1], [0, 1, 2, 3]),
    (rules.top_h(1), [0, 1, 2, 3], [0, 1, 2, 3]), (rules.top_h(1e-9), [0], [0]),
    (rules.top_h(0.5), [0], [0, 1]),
    (rules.top_n_sigma(1e-9), [0], [0, 1, 2, 3]),
    (rules.top_n_sigma(1000), [0, 1, 2, 3], [0, 1, 2, 3]),
    (rules.top_a(0), [0, 1, 2, 3], [0, 1, 2, 3]), (rules.top_a(1), [0, 1, 2], [0, 1, 2, 3]),
    (rules.tfs_z(1), [0, 1, 2, 3], [0, 1, 2, 3]), (rules.tfs_z(0), [0], [0, 1, 2]),
    (rules.xtc(0, 0), [0, 1, 2, 3], [0, 1, 2, 3]), (rules.xtc(1, 0), [3], [3]),
    (rules.xtc(1, 0.15), [2, 3], [3]), (rules.xtc(1, 0.5), [0, 1, 2, 3], [0, 1, 2, 3]),
    (rules.xtc(1, 1), [0, 1, 2, 3], [0, 1, 2, 3]),
    (rules.mirostat_2(0, 0.1), [0], [0]), (rules.mirostat_2(1, 0.1), [0, 1], [0, 1, 2, 3]),
    (rules.mirostat_2(1000, 1), [0, 1, 2, 3], [0, 1, 2, 3]),
    (rules.mirostat_1(0, 0.1), [0], [0]), (rules.mirostat_1(1000, 1), [0, 1, 2, 3], [0, 1, 2, 3]),
]


@WAYS
@pytest.mark.parametrize(("rule", "falling", "equal"), WANT, ids=lambda value: str(value))
def test_extreme_values_of_cuts(rule, falling, equal, dtype):
    for row, want in ((FALLING, falling), (EQUAL, equal)):
        own = seat_of((rule,), 4, tokens=0)
        left = Row(logits_of(row[None].astype(dtype)), 0, own).shaped
        assert sorted(left.ids.tolist()) == want


@WAYS
@pytest.mark.parametrize(("t", "want"), [
    (5e-324, [0.5, 0.5, 0, 0]), (1e-300, [0.5, 0.5, 0, 0]), (1e-40, [0.5, 0.5, 0, 0]),
    (1e-3, [0.5, 0.5, 0, 0]), (1000, [0.250375, 0.250375, 0.250125, 0.249126]),
    (1e300, [0.25, 0.25, 0.25, 0.25])])
def test_extreme_temperatures(t, want, dtype):
    """Of equal tokens none is favoured."""
    row = [2.0, 2.0, 1.0, -3.0]
    assert probabilities(row, temperature(t), dtype=dtype) == pytest.approx(want, abs=1e-6)
    assert kept([0.0, -INF, 1.0], temperature(t), dtype=dtype) in ([0, 2], [2])


# ── a temperature next to nothing ────────────────────────────────────────────────────────────────
@WAYS
@pytest.mark.parametrize("t", [1e-300, 1e-40])
@pytest.mark.parametrize("edge", ["half removed", "padded", "ties", "sure", "65 tokens"])
def test_what_a_rule_leaves_is_greedy_behind_it(edge, t, dtype):
    """The likeliest of what any rule leaves, of several each the same."""
    vocab = len(EDGES[edge])
    every = cases(edge, dtype)
    for rule, recipe, left, _ in every[len(every) // 2:]:
        if recipe == (rule,) and len(left.ids):
            p = np.exp(logs(left, vocab))
            best = (p > p.max() * (1 - 1e-9)).astype(float)
            row = EDGES[edge].astype(np.float32)[None].astype(dtype)
            made = Row(logits_of(row), 0, within(rule, vocab, (rule, temperature(t))))
            got = np.exp(logs(made.shaped, vocab))
            assert got == pytest.approx(best / best.sum(), abs=1e-6), str(rule)


@WAYS
@pytest.mark.parametrize("t", [1e-300, 1e-40])
@pytest.mark.parametrize("edge", ["half removed", "padded", "ties", "sure", "65 tokens"])
def test_a_rule_behind_it_removes_or_keeps_the_likeliest(edge, t, dtype):
    """A rule that removes them may find no other left: float32 does not hold values so low."""
    there = set(np.flatnonzero(np.isfinite(EDGES[edge])).tolist())
    for rule in EVERY:
        row = EDGES[edge].astype(np.float32)[None].astype(dtype)
        made = Row(logits_of(row), 0, within(rule, len(EDGES[edge]), (temperature(t), rule)))
        if made.empty:
            assert rule.name in MAY_EMPTY and str(rule) in made.why_empty()
            continue
        left = made.shaped
        assert np.isfinite(left.values).all() and np.isfinite(left.norm), str(rule)
        assert rule.name in REVIVE or set(left.ids.tolist()) <= there, str(rule)
        assert np.exp(left.values - left.norm).sum() == pytest.approx(1, abs=1e-9), str(rule)
        assert made.pick[0] in left.ids, str(rule)


# ── rows that cannot be read ─────────────────────────────────────────────────────────────────────
def read_all(rows, recipes, dtype):
    """What became of the first place of as many requests, read in one forward."""
    opens = []
    for i, recipe in enumerate(recipes):
        job = Job(Request((1, 2, 1), Sample(), recipe, seed=i))
        opens.append(Open(job, job.branches[0], i, 1))
    found = read(logits_of(np.asarray(rows, np.float32).astype(dtype)), opens)
    return [found[o.branch] for o in opens]


@WAYS
@pytest.mark.parametrize("value", [np.nan, INF])
def test_a_damaged_row_is_an_error_of_its_request_alone(value, dtype):
    """Also if a rule removes what is damaged."""
    damaged = only({7: value}, rest=0.5)
    recipes = [recipe for rule in EVERY for recipe in ((rule,), (suppress(data=(7,)), rule))]
    alone = read_all([noise(SMALL)] * len(recipes), recipes, dtype)
    beside = read_all([noise(SMALL)] * len(recipes) + [damaged] * len(recipes), recipes * 2, dtype)
    for recipe, one, same, bad in zip(recipes, alone, beside, beside[len(recipes):], strict=False):
        assert isinstance(bad, RowError) and "nothing can be chosen" in str(bad), recipe
        assert str(one) == str(same), recipe


@WAYS
def test_when_every_token_is_removed_the_error_names_the_rules(dtype):
    """A rule neither brings a token back nor fails on a row that has none, but for those that force
    one."""
    recipes = [recipe for rule in EVERY for recipe in ((ALL_GONE, rule), (rule, ALL_GONE))]
    for recipe, slots in zip(recipes, read_all([noise(SMALL)] * len(recipes), recipes, dtype),
                             strict=True):
        what = [*map(str, recipe)]
        if recipe[0] == ALL_GONE and recipe[1].name in ("forced_first", "prefix_allowed"):
            assert not isinstance(slots, Exception), what
        else:
            assert isinstance(slots, RowError) and "removed every one" in str(slots), what
            assert any(str(rule) in str(slots) for rule in recipe), what


@WAYS
def test_the_rule_that_removes_the_last_tokens_is_named(dtype):
    cut, ban = rules.top_k(2), suppress(data=(0, 1))
    [slots] = read_all([[2.0, 1.0, 0.0]], [(temperature(0.5), cut, ban)], dtype)
    assert str(slots) == (f"no token is left: {cut} and {ban} removed every one; loosen one of "
                          "them")
    [slots] = read_all([[2.0, 1.0, 0.0]], [(suppress(data=(0, 1, 2)),)], dtype)
    assert "suppress((0, 1, 2)) removed every one; loosen it" in str(slots)
