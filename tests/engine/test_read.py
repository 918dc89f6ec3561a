"""Slots read from rows: true facts, fair picks, drafts depth by depth, faults kept to their own."""
from types import SimpleNamespace

import numpy as np
import pytest

from unspool.core.branch import Branch
from unspool.core.edits import Draft
from unspool.core.errors import RowError
from unspool.core.job import Job
from unspool.core.request import Request
from unspool.core.schedule import ramp
from unspool.core.slot import Reading
from unspool.core.stage import Stage
from unspool.engine.read import Open, read
from unspool.kernels.reading.logits import logits_of
from unspool.kernels.reading.noise import gumbel
from unspool.rules import KINDS, custom, greedy, repetition_penalty, rule, temperature, top_k, top_p
from unspool.strategies import Sample

VOCAB = 6
ROW = np.array([0.0, 2.0, -1.0, 1.0, 0.5, -2.0])


@pytest.fixture(autouse=True)
def registry():
    before = dict(KINDS)
    yield KINDS
    KINDS.clear()
    KINDS.update(before)




class Wants(Sample):
    reads = Reading(top=3)


WANTS = Wants()


class Opened(Open):
    """With its own rows, to be put into one forward with those of others."""

    def __init__(self, job, branch, rows):
        super().__init__(job, branch, 0, len(rows))
        self.rows = rows


def opened(rows=None, rules=(), draft=(), prompt=(3, 1), **fields):
    """A job whose one branch has these rows."""
    job = Job(Request(prompt, fields.pop("strategy", Sample()), rules, **fields))
    [branch] = job.branches
    job.apply([Draft(branch, tuple(draft))])
    rows = np.tile(ROW, (len(draft) + 1, 1)) if rows is None else np.asarray(rows)
    return Opened(job, branch, rows)


def read_all(opens, dtype=np.float64):
    """Read them together."""
    first = 0
    for o in opens:
        o.first, first = first, first + o.count
    rows = np.concatenate([o.rows for o in opens]).astype(dtype)
    return read(logits_of(rows), opens)


def slots_of(o, dtype=np.float64):
    return read_all([o], dtype)[o.branch]


def logs(row):
    return row - row.max() - np.log(np.exp(row - row.max()).sum())


# ── facts ────────────────────────────────────────────────────────────────────────────────────────
def test_the_facts_of_a_pick_before_and_after_the_rules():
    [slot] = slots_of(opened(rules=(temperature(0.5), top_k(2), greedy())))
    pick = slot.pick
    assert (pick.token, pick.rank, pick.processed) == (1, 1, 0.0)
    assert pick.logprob == pick.peak == pytest.approx(logs(ROW)[1])
    assert slot.drafted is None and slot.top == () and slot.row is None and pick.others == ()


def test_a_token_that_the_rules_removed_has_no_chance_but_keeps_its_raw_facts():
    first, _ = slots_of(opened(rules=(top_k(2),), draft=(5,)))
    assert first.drafted.token == 5 and first.drafted.processed == -np.inf
    assert first.drafted.logprob == pytest.approx(logs(ROW)[5]) and first.drafted.rank == 6


def test_ranks_count_the_likelier_and_equals_of_lower_id():
    row = np.array([1.0, 2.0, 2.0, 0.0, 2.0, -np.inf])
    got = {}
    for token in range(VOCAB):
        first, *_ = slots_of(opened([row, row], draft=(token,)))
        got[token] = first.drafted.rank
    assert got == {1: 1, 2: 2, 4: 3, 0: 4, 3: 5, 5: 6}


def test_the_reading_asks_for_the_likeliest_after_the_rules():
    [slot] = slots_of(opened(strategy=WANTS, rules=(temperature(2.0),)))
    assert [c.token for c in slot.top] == [1, 3, 4]
    assert [c.processed for c in slot.top] == pytest.approx(sorted(logs(ROW / 2))[:-4:-1])
    assert [c.logprob for c in slot.top] == pytest.approx(sorted(logs(ROW))[:-4:-1])


@pytest.mark.parametrize("rules", [(), (top_k(30),)])
def test_equals_are_read_lowest_id_first(rules):
    """Among few and among many tokens: a tie at the end of the list too."""
    row = np.zeros(40)
    row[[7, 31]] = 1.0
    [slot] = slots_of(opened([row], strategy=WANTS, rules=rules))
    assert [c.token for c in slot.top] == [7, 31, 0]


def test_fewer_are_read_when_the_rules_left_fewer():
    [slot] = slots_of(opened(strategy=WANTS, rules=(top_k(2),)))
    assert [c.token for c in slot.top] == [1, 3]


def test_others_are_the_likeliest_before_the_rules():
    [slot] = slots_of(opened(strategy=WANTS, rules=(greedy(),), others=2))
    want = ((1, pytest.approx(logs(ROW)[1])), (3, pytest.approx(logs(ROW)[3])))
    assert slot.pick.others == want and slot.top[0].others == want
    [slot] = slots_of(opened(others=99))
    assert [token for token, _ in slot.pick.others] == [1, 3, 4, 0, 2, 5]


def test_rows_are_kept_only_when_asked_for():
    [slot] = slots_of(opened(rules=(top_k(1),), keep_rows=True))
    assert slot.row.raw.tolist() == ROW.tolist() and slot.row.shaped.ids.tolist() == [1]


# ── picks ────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_pick_is_the_argmax_of_shaped_logits_and_the_noise_of_its_place(dtype):
    """Seed, choice, position in the whole text (prompt counted) and how often it was replaced."""
    for seed, choice, replaced, prompt in [(1, 0, 0, (3,)), (1, 2, 0, (3,)), (1, 0, 3, (3,)),
                                           (2**63, 5, 1, (3, 1, 4, 1, 5))]:
        o = opened(seed=seed, prompt=prompt, rules=(temperature(3.0),), draft=(1, 1))
        o.branch.choice, o.branch.replaced = choice, replaced
        want = [int(np.argmax(ROW / 3 + gumbel(seed, choice, len(prompt) + depth, 6 * replaced,
                                               np.arange(VOCAB)))) for depth in range(3)]
        assert [slot.pick.token for slot in slots_of(o, dtype)] == want


def test_removed_tokens_are_never_picked():
    picks = {slots_of(opened(seed=s, rules=(temperature(50.0), top_k(2))))[0].pick.token
             for s in range(200)}
    assert picks == {1, 3}


# ── drafts and what rules remember ───────────────────────────────────────────────────────────────
def once(registry):
    """A rule that removes every token that was written or drafted before."""
    @rule(start=lambda rule, prompt: (),
          after=lambda rule, state, token, fact: (*state, token))
    def never_twice(rows):
        values = rows.values.copy()
        for row, state in zip(values, rows.states, strict=True):
            row[list(state)] = -np.inf
        return values

    return never_twice()


def test_each_slot_is_shaped_with_the_draft_before_it(registry):
    slots = slots_of(opened(rules=(once(registry), greedy()), draft=(1, 3, 1)))
    assert [s.pick.token for s in slots] == [1, 3, 4, 4]
    assert [s.drafted.token for s in slots[:3]] == [1, 3, 1] and slots[3].drafted is None
    assert slots[2].drafted.processed == -np.inf
    assert np.isfinite([s.pick.processed for s in slots]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_each_slot_sees_the_text_with_the_draft_before_it(dtype):
    rules = (repetition_penalty(100), greedy())
    slots = slots_of(opened(rules=rules, draft=(1, 3, 1), prompt=(5,)), dtype)
    assert [s.pick.token for s in slots] == [1, 3, 4, 4]
    slots = slots_of(opened(rules=rules, draft=(1, 3, 1), prompt=(1, 5)), dtype)
    assert [s.pick.token for s in slots] == [3, 3, 4, 4]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_rule_may_be_told_what_a_token_was_before_it(registry, dtype):
    @rule(entry=True, start=lambda rule, prompt: (),
          after=lambda rule, state, token, fact: (*state, fact.entry))
    def told(rows):
        return rows.values

    rules = (top_k(3), told(), greedy())
    o = opened(rules=rules, draft=(3,))
    first, second = slots_of(o, dtype)
    want = logs(ROW[[1, 3, 4]])
    assert first.drafted.entry == pytest.approx(want[1])
    assert first.pick.entry == second.pick.entry == pytest.approx(want[0])
    [plain] = slots_of(opened(rules=rules[::2]), dtype)
    assert np.isnan(plain.pick.entry)


def test_reading_does_not_change_the_branch(registry):
    o = opened(rules=(once(registry), repetition_penalty(2), greedy()), draft=(1, 3))
    before = {name: getattr(o.branch, name) for name in o.branch.__slots__}
    slots_of(o)
    assert {name: getattr(o.branch, name) for name in o.branch.__slots__} == before


def test_drafts_of_unequal_length_are_read_together_as_alone(registry):
    recipe = (once(registry), repetition_penalty(1.5), temperature(0.7), top_k(4))

    def some():
        return [opened(rules=recipe, draft=d, seed=i, prompt=(0,) * (i + 1))
                for i, d in enumerate([(1, 3, 4), (), (5,), (0, 1)])]

    together, alone = some(), some()
    slots = read_all(together)
    for one, other in zip(together, alone, strict=True):
        assert len(slots[one.branch]) == len(one.branch.draft) + 1
        assert slots[one.branch] == slots_of(other)


def many(draw):
    """Requests of every kind, each with a row of its own."""
    recipes = [(), (greedy(),), (temperature(0.8),), (temperature(1.3), top_k(40)),
               (temperature(0.8), top_p(0.9)), (top_p(0.99),), (temperature(2.0), temperature(2.0))]
    fields = [{}, {"others": 3}, {"strategy": WANTS}, {"keep_rows": True}]
    for i in range(56):
        drafted = tuple(draw.integers(0, 3000, i % 3).tolist())
        rows = draw.normal(0, 1 + i % 5, (len(drafted) + 1, 3000))
        yield opened(rows, recipes[i % 7], drafted, seed=i, **fields[i % 4])


def plain(slots):
    return [(s.pick, s.drafted, s.top) for s in slots]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_requests_of_every_kind_are_read_together_as_alone(dtype):
    """In every bit."""
    opens = list(many(np.random.default_rng(0)))
    slots = read_all(opens, dtype)
    for o, same in zip(opens, many(np.random.default_rng(0)), strict=True):
        assert plain(slots[o.branch]) == plain(slots_of(same, dtype))


def test_float32_rows_have_the_facts_of_float64():
    pairs = zip(many(np.random.default_rng(1)), many(np.random.default_rng(1)), strict=True)
    for one, other in pairs:
        one.rows = other.rows = one.rows.astype(np.float32)
        for a, b in zip(slots_of(one, np.float32), slots_of(other, np.float64), strict=True):
            facts = zip((a.pick, *a.top, a.drafted), (b.pick, *b.top, b.drafted), strict=True)
            for x, y in ((x, y) for x, y in facts if x is not None):
                assert (x.token, x.rank) == (y.token, y.rank)
                assert x[1:3] == pytest.approx(y[1:3], abs=1e-12)
                assert x.peak == pytest.approx(y.peak, abs=1e-12)
                assert [i for i, _ in x.others] == [i for i, _ in y.others]


@pytest.mark.parametrize("rules", [(), (greedy(),), (temperature(0.5),), (top_k(2),)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kept_rows_outlive_the_forward(rules, dtype):
    o = opened(rules=rules, keep_rows=True)
    buffer = np.array(o.rows, dtype)
    [slot] = read(logits_of(buffer), [o])[o.branch]
    before = slot.row.candidate(3), slot.row.shaped.values.tolist()
    buffer[:] = 0
    assert slot.row.raw.tolist() == ROW.tolist()
    assert (slot.row.candidate(3), slot.row.shaped.values.tolist()) == before
    assert slot.row.candidate(slot.pick.token) == slot.pick


# ── faults ───────────────────────────────────────────────────────────────────────────────────────
BAD = {"nan": np.nan, "infinity": np.inf}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", BAD.values(), ids=BAD)
def test_a_damaged_row_is_an_error_of_its_request_alone(value, dtype):
    row = ROW.copy()
    row[2] = value
    good, bad, other = opened(seed=1), opened([row]), opened(seed=2)
    slots = read_all([good, bad, other], dtype)
    assert isinstance(slots[bad.branch], RowError)
    assert "nothing can be chosen" in str(slots[bad.branch])
    for o, seed in ((good, 1), (other, 2)):
        assert slots[o.branch] == slots_of(opened(seed=seed), dtype)


@pytest.mark.parametrize("rules", [(), (greedy(),), (temperature(0.5), top_k(2))])
def test_a_row_without_any_score_is_an_error(rules):
    fault = slots_of(opened([np.full(VOCAB, -np.inf)], rules=rules))
    assert isinstance(fault, RowError)


def test_rules_that_remove_every_token_are_an_error(registry):
    @rule()
    def none_left(rows):
        return np.full_like(rows.values, -np.inf)

    for after in [(), (greedy(),), (temperature(0.5), top_k(2))]:
        rules = (none_left(), *after)
        good, bad = opened(seed=1, rules=rules[1:]), opened(rules=rules)
        slots = read_all([good, bad])
        assert isinstance(slots[bad.branch], RowError)
        assert "removed every one" in str(slots[bad.branch])
        assert len(slots[good.branch]) == 1


def test_a_rule_that_raises_is_an_error_of_its_request_alone(registry):
    @rule()
    def breaks(rows, when):
        if (when == 1).any():
            raise ZeroDivisionError("by this rule")
        return rows.values

    good, bad, other = (opened(rules=(breaks(w),), seed=4) for w in (0, 1, 0))
    slots = read_all([good, bad, other])
    assert isinstance(slots[bad.branch], ZeroDivisionError)
    assert slots[good.branch] == slots[other.branch] == slots_of(opened(rules=(breaks(0),), seed=4))


def test_what_is_wrong_behind_a_guess_ends_the_reading_there(registry):
    """The guess may be wrong, and then the row behind it is nobody's."""
    row = ROW.copy()
    row[0] = np.nan
    slots = slots_of(opened([ROW, ROW, row, ROW], draft=(1, 3, 4)))
    assert len(slots) == 2 and [s.drafted.token for s in slots] == [1, 3]

    def refuse(rule, state, token, fact):
        if token == 3:
            raise ValueError("not this one")
        return state

    @rule(after=refuse)
    def picky(rows):
        return rows.values

    slots = slots_of(opened(rules=(picky(),), draft=(1, 3, 4)))
    assert len(slots) == 2 and slots[1].drafted.token == 3


def test_a_drafted_token_outside_the_vocabulary_is_an_error_of_its_request_alone():
    good, bad = opened(seed=1), opened([ROW, ROW], draft=(VOCAB,))
    slots = read_all([good, bad])
    assert isinstance(slots[bad.branch], IndexError)
    assert slots[good.branch] == slots_of(opened(seed=1))
    assert isinstance(good.branch, Branch) and read(logits_of(ROW[None]), []) == {}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_function_is_called_once_though_that_of_a_neighbour_fails(dtype):
    calls = []

    def counted(ids, logits):
        calls.append(ids)
        return logits

    def failing(ids, logits):
        raise KeyError("theirs")

    mine = opened(rules=(custom(data=counted),))
    theirs, plain = opened(rules=(custom(data=failing),)), opened(rules=(top_k(2),))
    found = read_all([mine, theirs, plain], dtype)
    assert calls == [[3, 1]]
    assert isinstance(found[theirs.branch], KeyError)
    assert len(found[mine.branch]) == len(found[plain.branch]) == 1


# ── readings that ask for more ───────────────────────────────────────────────────────────────────
def asking(**reads):
    """Sampling with another reading."""
    return type("Asking", (Sample,), {"reads": Reading(**reads)})()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_noisy_ones_are_those_with_the_largest_sums_and_true_facts(dtype):
    rules = (top_k(5), temperature(0.7))
    [slot] = slots_of(opened(strategy=asking(perturbed=4, pick=False), rules=rules), dtype)
    left = np.where(np.arange(VOCAB) == 5, -np.inf, ROW / 0.7)  # what top_k removed
    values = [value for _, value in slot.perturbed]
    assert values == sorted(values, reverse=True) and len(set(values)) == 4
    for fact, value in slot.perturbed:
        assert fact.processed == pytest.approx(logs(left)[fact.token], abs=1e-5)
        assert fact.logprob == pytest.approx(logs(ROW)[fact.token], abs=1e-5)
        assert np.isfinite(value) and value != fact.processed
    [few] = slots_of(opened(strategy=asking(perturbed=9, pick=False), rules=rules), dtype)
    assert len(few.perturbed) == 5 and few.perturbed[:4] == slot.perturbed


def test_noise_of_a_search_is_of_the_text_and_of_the_place_in_a_draft():
    strategy = asking(perturbed=VOCAB, pick=False)

    def noise(written, draft=()):
        o = opened([ROW] * (len(draft) + 1), strategy=strategy, draft=draft)
        for token in written:
            o.branch.settled = o.branch.settled.extend(token)
        return [{c.token: value - c.processed for c, value in slot.perturbed}
                for slot in slots_of(o)]

    [one], [other], again = noise((2, 4)), noise((2, 5)), noise((2,), (4, 1))
    assert all(one[t] != other[t] for t in range(VOCAB))
    assert again[1] == one and again[0] != one  # behind the draft as behind the text


def test_named_tokens_are_read_whatever_the_rules_left():
    for o in (opened(strategy=asking(named=(5, 1, 3), top=1), rules=(top_k(2),)),
              opened(strategy=asking(named=(5, 1, 3), top=1, perturbed=2), rules=(top_k(2),))):
        [slot] = slots_of(o)
        assert list(slot.named) == [5, 1, 3] and len(slot.top) == 1
        assert slot.named[5].processed == -np.inf and slot.named[1] == slot.top[0]
        assert slot.named[5].logprob == pytest.approx(logs(ROW)[5]) and slot.named[5].rank == 6
    faulty = read_all([o := opened(strategy=asking(named=(VOCAB,)))])[o.branch]
    assert isinstance(faulty, IndexError)


def test_raw_ones_are_those_of_the_model_without_what_has_no_chance():
    rules = (temperature(0.2), top_k(1))
    [slot] = slots_of(opened(strategy=asking(raw=3), rules=rules))
    assert [t for t, _ in slot.raw] == [1, 3, 4]
    assert [v for _, v in slot.raw] == pytest.approx(sorted(logs(ROW))[:-4:-1])
    cut = np.where(np.arange(VOCAB) < 2, ROW, -np.inf)  # as a mix may leave it
    [slot] = slots_of(opened([cut], strategy=asking(raw=3)))
    assert [t for t, _ in slot.raw] == [1, 0]
    assert np.exp([v for _, v in slot.raw]).sum() == pytest.approx(1)


def test_what_the_forward_read_besides_is_put_where_it_belongs():
    turn = SimpleNamespace(similarity=[0.25, 0.5, 0.75], states=np.eye(3))
    o = opened(strategy=asking(top=2, similarity=True, hidden=True), draft=(1, 3))
    o.turn = turn
    slots = slots_of(o)
    assert [slot.similarity for slot in slots] == turn.similarity
    for depth, slot in enumerate(slots):
        for fact in (slot.pick, slot.drafted, *slot.top):
            assert fact is None or fact.state.tolist() == turn.states[depth].tolist()


def test_an_uncertain_place_is_measured_before_the_rules_where_a_stage_ends_by_it():
    p = np.exp(logs(ROW))
    for most, want in ((None, 0.0), (9.0, -(p * np.log2(p)).sum())):
        stage = Stage(Sample(), entropy_above=most)
        [slot] = slots_of(opened(rules=(greedy(),), program=(stage, Stage(Sample()))))
        assert slot.entropy == pytest.approx(want)


def test_rules_are_those_of_the_stage_with_the_numbers_of_the_step():
    falling = temperature(ramp(2.0, 1.0, 2))
    stages = (Stage(Sample(), (0,)), Stage(Sample(), (1, 2)))
    o = opened(rules=(greedy(), falling, top_k(4)), program=stages, draft=(1, 3, 2))
    assert [slot.pick.processed for slot in slots_of(o)] == [0.0] * 4  # the first: greedy
    o.branch.stage, o.branch.since = 1, 0
    left = [c.processed for c in (slot.drafted for slot in slots_of(o)) if c is not None]
    kept = np.sort(ROW)[-4:]
    want = [logs(kept / t)[list(kept).index(ROW[token])] if ROW[token] in kept else -np.inf
            for t, token in zip((2.0, 1.5, 1.0), (1, 3, 2), strict=True)]
    assert left == pytest.approx(want)
