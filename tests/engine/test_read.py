"""Slots read from rows: true facts, fair picks, drafts depth by depth, faults kept to their own."""
import numpy as np
import pytest
import torch

from unspool.core.branch import Branch
from unspool.core.edits import Draft
from unspool.core.errors import RowError
from unspool.core.job import Job
from unspool.core.request import Request
from unspool.core.slot import Reading
from unspool.engine.read import Open, host, read
from unspool.kernels.philox import gumbel
from unspool.rules import KINDS, greedy, rule, temperature, top_k
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


def opened(rows=None, rules=(), draft=(), prompt=(3, 1), **fields):
    """A job whose one branch has these rows."""
    job = Job(Request(prompt, fields.pop("strategy", Sample()), rules, **fields))
    [branch] = job.branches
    job.apply([Draft(branch, tuple(draft))])
    rows = np.tile(ROW, (len(draft) + 1, 1)) if rows is None else np.asarray(rows)
    return Open(job, branch, rows)


def slots_of(o):
    return read([o])[o.branch]


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
def test_the_pick_is_the_argmax_of_shaped_logits_and_the_noise_of_its_place():
    """Seed, choice, position in the whole text (prompt counted) and how often it was replaced."""
    for seed, choice, replaced, prompt in [(1, 0, 0, (3,)), (1, 2, 0, (3,)), (1, 0, 3, (3,)),
                                           (2**63, 5, 1, (3, 1, 4, 1, 5))]:
        o = opened(seed=seed, prompt=prompt, rules=(temperature(3.0),), draft=(1, 1))
        o.branch.choice, o.branch.replaced = choice, replaced
        want = [int(np.argmax(ROW / 3 + gumbel(seed, choice, len(prompt) + depth, 6 * replaced,
                                               np.arange(VOCAB)))) for depth in range(3)]
        assert [slot.pick.token for slot in slots_of(o)] == want


def test_removed_tokens_are_never_picked():
    picks = {slots_of(opened(seed=s, rules=(temperature(50.0), top_k(2))))[0].pick.token
             for s in range(200)}
    assert picks == {1, 3}


# ── drafts and what rules remember ───────────────────────────────────────────────────────────────
def once(registry):
    """A rule that removes every token that was written or drafted before."""
    @rule(reads="row", start=lambda prompt: (),
          after=lambda state, token, fact: (*state, token))
    def never_twice(rows, states):
        rows = rows.copy()
        for row, state in zip(rows, states, strict=True):
            row[list(state)] = -np.inf
        return rows

    return never_twice()


def test_each_slot_is_shaped_with_the_draft_before_it(registry):
    slots = slots_of(opened(rules=(once(registry), greedy()), draft=(1, 3, 1)))
    assert [s.pick.token for s in slots] == [1, 3, 4, 4]
    assert [s.drafted.token for s in slots[:3]] == [1, 3, 1] and slots[3].drafted is None
    assert slots[2].drafted.processed == -np.inf
    assert np.isfinite([s.pick.processed for s in slots]).all()


def test_reading_does_not_change_the_branch(registry):
    o = opened(rules=(once(registry), greedy()), draft=(1, 3))
    before = {name: getattr(o.branch, name) for name in o.branch.__slots__}
    slots_of(o)
    assert {name: getattr(o.branch, name) for name in o.branch.__slots__} == before


def test_drafts_of_unequal_length_are_read_together_as_alone(registry):
    recipe = (once(registry), temperature(0.7), top_k(4))

    def some():
        return [opened(rules=recipe, draft=d, seed=i, prompt=(0,) * (i + 1))
                for i, d in enumerate([(1, 3, 4), (), (5,), (0, 1)])]

    together, alone = some(), some()
    slots = read(together)
    for one, other in zip(together, alone, strict=True):
        assert len(slots[one.branch]) == len(one.branch.draft) + 1
        assert slots[one.branch] == slots_of(other)


# ── faults ───────────────────────────────────────────────────────────────────────────────────────
BAD = {"nan": np.nan, "infinity": np.inf}


@pytest.mark.parametrize("value", BAD.values(), ids=BAD)
def test_a_damaged_row_is_an_error_of_its_request_alone(value):
    row = ROW.copy()
    row[2] = value
    good, bad, other = opened(seed=1), opened([row]), opened(seed=2)
    slots = read([good, bad, other])
    assert isinstance(slots[bad.branch], RowError)
    assert "nothing can be chosen" in str(slots[bad.branch])
    for o, seed in ((good, 1), (other, 2)):
        assert slots[o.branch] == slots_of(opened(seed=seed))


@pytest.mark.parametrize("rules", [(), (greedy(),), (temperature(0.5), top_k(2))])
def test_a_row_without_any_score_is_an_error(rules):
    fault = slots_of(opened([np.full(VOCAB, -np.inf)], rules=rules))
    assert isinstance(fault, RowError)


def test_rules_that_remove_every_token_are_an_error(registry):
    @rule(reads="row")
    def none_left(rows, states):
        return np.full_like(rows, -np.inf)

    for after in [(), (greedy(),), (temperature(0.5), top_k(2))]:
        rules = (none_left(), *after)
        good, bad = opened(seed=1, rules=rules[1:]), opened(rules=rules)
        slots = read([good, bad])
        assert isinstance(slots[bad.branch], RowError)
        assert "removed every one" in str(slots[bad.branch])
        assert len(slots[good.branch]) == 1


def test_a_rule_that_raises_is_an_error_of_its_request_alone(registry):
    @rule(reads="row")
    def breaks(rows, states, when):
        if (when == 1).any():
            raise ZeroDivisionError("by this rule")
        return rows

    good, bad, other = (opened(rules=(breaks(w),), seed=4) for w in (0, 1, 0))
    slots = read([good, bad, other])
    assert isinstance(slots[bad.branch], ZeroDivisionError)
    assert slots[good.branch] == slots[other.branch] == slots_of(opened(rules=(breaks(0),), seed=4))


def test_what_is_wrong_behind_a_guess_ends_the_reading_there(registry):
    """The guess may be wrong, and then the row behind it is nobody's."""
    row = ROW.copy()
    row[0] = np.nan
    slots = slots_of(opened([ROW, ROW, row, ROW], draft=(1, 3, 4)))
    assert len(slots) == 2 and [s.drafted.token for s in slots] == [1, 3]

    def refuse(state, token, fact):
        if token == 3:
            raise ValueError("not this one")
        return state

    @rule(reads="row", after=refuse)
    def picky(rows, states):
        return rows

    slots = slots_of(opened(rules=(picky(),), draft=(1, 3, 4)))
    assert len(slots) == 2 and slots[1].drafted.token == 3


def test_a_drafted_token_outside_the_vocabulary_is_an_error_of_its_request_alone():
    good, bad = opened(seed=1), opened([ROW, ROW], draft=(VOCAB,))
    slots = read([good, bad])
    assert isinstance(slots[bad.branch], IndexError)
    assert slots[good.branch] == slots_of(opened(seed=1))
    assert isinstance(good.branch, Branch) and read([]) == {}


def test_rows_of_a_device_come_to_the_host():
    rows = torch.tensor([[1.0, 2.0]])
    assert host(rows).tolist() == [[1.0, 2.0]]
    same = np.ones((1, 2))
    assert host(same) is same
