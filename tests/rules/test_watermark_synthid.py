"""The tournament: transformers' own along real texts, its law over keys, and detection."""
import marks_zoo
import numpy as np
import pytest
import torch
from marks_zoo import NEW, PROMPT, VOCAB
from transformers.generation.logits_process import SynthIDTextWatermarkLogitsProcessor

from unspool.core.history import history
from unspool.engine.shape import shape, shaped
from unspool.kernels.reading.logits import logits_of
from unspool.rules import synthid, temperature, top_k
from unspool.rules.plain import Seat
from unspool.rules.watermarks import detect, watermark_of
from unspool.rules.watermarks.synthid import Tournament

KEYS = [654, 400, 836, 123, 340, 443, 597, 160, 57, 29, 590, 639, 13, 715, 468, 990, 966, 226, 324]
FACT = None


def fields(**more):
    return {"ngram_len": 5, "keys": KEYS, "context_history_size": 1024, "sampling_table_seed": 0,
            "sampling_table_size": 2**16, "skip_first_ngram_calls": False, **more}


def ours(**more):
    return watermark_of({"kind": "synthid", **fields(**more)}, VOCAB)


def processor(**more):
    return SynthIDTextWatermarkLogitsProcessor(device="cpu", **fields(**more))


def left(row, state, *rules):
    seat = Seat(rules, (*(None,) * (len(rules) - 1), state), history([0]))
    group, place = shaped(logits_of(row[None]), 0, seat)
    return group.left(place)


def theirs_after(ids, row, theirs):
    """In float64, as the tournament subtracts numbers that are nearly equal."""
    return theirs(torch.tensor([ids]), torch.tensor(row.astype(np.float64))[None])[0].numpy()


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("more", [
    {}, {"skip_first_ngram_calls": True}, {"ngram_len": 2}, {"ngram_len": 3, "keys": KEYS[:1]},
    {"context_history_size": 3, "ngram_len": 2}, {"context_history_size": 0, "ngram_len": 2},
    {"sampling_table_seed": 2**40 + 9, "sampling_table_size": 1000}])
def test_rows_are_those_of_transformers_along_a_text(more, dtype):
    """The text repeats itself, so that contexts come again."""
    draw, theirs, rule = np.random.default_rng(0), processor(**more), ours(**more)
    in_its_own, state, ids, alone = processor(**more), rule.start(PROMPT), [*PROMPT], 0
    for token in [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 6, 6, 6, 7, 1, 2, 3, 9]:
        row = draw.normal(0, 2, VOCAB).astype(dtype)
        want = theirs_after(ids, row, theirs)
        got = left(row, state, rule)
        assert got.ids.tolist() == list(range(VOCAB))
        assert np.abs(got.values - want).max() < 1e-5
        assert (got.values == row).all() == (want == row).all()
        alone += int((want == row).all())
        own = in_its_own(torch.tensor([ids]), torch.tensor(row)[None])[0].softmax(-1).numpy()
        assert np.abs(np.exp(got.values - got.norm) - own).max() < 1e-5
        state, ids = rule.after(state, token, FACT), [*ids, token]
    assert (0 if more.get("context_history_size") == 0 else 1) <= alone < 20


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_after_a_cut_those_that_are_left_play(dtype):
    row = np.random.default_rng(1).normal(0, 3, VOCAB).astype(dtype)
    theirs, rule = processor(), ours()
    cut = np.where(np.argsort(np.argsort(-row)) < 30, row, -np.inf)
    want = theirs_after(PROMPT, cut, theirs)
    got = left(row, rule.start(PROMPT), top_k(30), rule)
    assert sorted(got.ids.tolist()) == np.flatnonzero(cut > -np.inf).tolist()
    assert np.abs(got.values - want[got.ids]).max() < 1e-5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_token_that_is_nearly_sure(dtype):
    """Nobody is lost by rounding."""
    row = np.zeros(VOCAB, dtype)
    row[3] = 100
    got = left(row, ours().start(PROMPT), ours())
    assert len(got.ids) == VOCAB
    assert got.values[np.flatnonzero(got.ids == 3)[0]] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_over_keys_the_picks_are_draws_from_the_distribution(dtype):
    keys, row = 20_000, np.random.default_rng(5).normal(0, 1.5, 12).astype(dtype)
    seats, bits = [], np.random.default_rng(6)
    for i, own in enumerate(bits.integers(0, 2**62, (keys, 3)).tolist()):
        rules = (temperature(0.8), top_k(9), synthid(data=Tournament(tuple(own), 3)))
        states = tuple(rule.start(PROMPT) for rule in rules)
        seats.append(Seat(rules, states, None, (i, 0, 5, 0), True))
    groups = shape(logits_of(row[None]), [0] * keys, seats)
    picks = np.bincount([group.pick(i)[0] for group, i in groups], minlength=12)
    plain = left(row, None, temperature(0.8), top_k(9))
    want = keys * np.exp(plain.values - plain.norm)
    assert picks.sum() == picks[plain.ids].sum()
    assert ((picks[plain.ids] - want) ** 2 / want).sum() < 26.1  # chi-square, 8 degrees: p = 0.001


# ── detection ────────────────────────────────────────────────────────────────────────────────────
def bits_of_theirs(ids, more):
    """[tokens, depth] of the tokens whose contexts are new."""
    theirs, text = processor(**more), torch.tensor([ids])
    mask = theirs.compute_context_repetition_mask(text)[0].numpy()
    return theirs.compute_g_values(text)[0].numpy()[mask]


@pytest.mark.parametrize("more", [
    {}, {"ngram_len": 2}, {"ngram_len": 2, "context_history_size": 5},
    {"sampling_table_size": 999, "keys": KEYS[:7]}])
def test_the_bits_are_those_that_transformers_finds(more):
    """And the two means as DeepMind's detectors take them."""
    for ids in (marks_zoo.text(ours(**more), new=60), [1, 2, 3, 1, 2, 3, 4] * 9):
        bits = bits_of_theirs(ids, more)
        found = detect(ids, ours(**more), weighted=False)
        assert found.counted == len(bits) and found.score == pytest.approx(bits.mean())
        assert found.z == pytest.approx((2 * bits.mean() - 1) * np.sqrt(bits.size))
        weights = np.linspace(10, 1, bits.shape[1])
        weights *= bits.shape[1] / weights.sum()
        assert detect(ids, ours(**more)).score == pytest.approx((bits * weights).mean())


@pytest.mark.parametrize("weighted", [False, True])
def test_marked_text_is_found_and_other_text_is_not(weighted):
    rules = (temperature(0.9), ours())
    ids = marks_zoo.text(*rules)
    found = detect(ids, ours(), weighted=weighted)
    assert found.marked and found.z > 4 and found.p_value < 1e-6
    assert 0.9 * NEW < found.counted <= NEW - 4
    for other in (detect(ids, ours(keys=[k + 1000 for k in KEYS]), weighted=weighted),
                  detect(marks_zoo.text(temperature(0.9)), ours(), weighted=weighted)):
        assert not other.marked and abs(other.z) < 4 and other.score == pytest.approx(0.5, abs=0.05)


def test_what_is_written_there_is_found_here():
    theirs, table, draw = processor(), marks_zoo.table(), torch.Generator().manual_seed(0)
    ids = [*PROMPT]
    for _ in range(NEW):
        row = theirs(torch.tensor([ids]), table[ids[-1]][None])[0]
        ids.append(int(torch.multinomial(row.softmax(-1), 1, generator=draw)))
    found = detect(ids[len(PROMPT):], ours())
    assert found.marked and found.z > 4


def test_the_z_of_unmarked_texts_has_deviation_one():
    draw, rule = np.random.default_rng(0), ours()
    for weighted in (False, True):
        zs = [detect(draw.integers(0, 50_000, 64).tolist(), rule, weighted=weighted).z
              for _ in range(300)]
        assert abs(np.mean(zs)) < 0.25 and abs(np.std(zs) - 1) < 0.15


def test_nothing_to_count_is_no_mark():
    found = detect([1, 2, 3, 4], ours())
    assert (found.counted, found.z, found.p_value, found.marked) == (0, 0.0, 1.0, False)


def test_drafts_and_definitions_write_the_same_text():
    rules = (temperature(0.8), top_k(50), ours(ngram_len=3, context_history_size=20))
    with_drafts, known = marks_zoo.drafted(*rules, new=60)
    assert with_drafts == known == marks_zoo.text(*rules, new=60, dtype="float64")


def test_every_choice_is_marked_and_another_text():
    found = marks_zoo.texts(ours(), n=3)
    assert len({tuple(ids) for ids in found}) == 3
    assert all(detect(ids, ours()).marked for ids in found)
