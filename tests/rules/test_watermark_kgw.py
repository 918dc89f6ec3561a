"""Green lists: transformers' own, found by its detector, and its texts by ours."""
import marks_zoo
import numpy as np
import pytest
import torch
from marks_zoo import NEW, PROMPT, VOCAB
from transformers import PreTrainedConfig, WatermarkDetector
from transformers.generation.logits_process import WatermarkLogitsProcessor

from unspool.core.history import history
from unspool.engine.shape import shaped
from unspool.kernels.reading.logits import logits_of
from unspool.rules import temperature, top_k
from unspool.rules.plain import Seat
from unspool.rules.watermarks import detect, kgw, watermark_of
from unspool.rules.watermarks.kgw import Greens

BOTH = ["lefthash", "selfhash"]
FACT = None


def fields(scheme="lefthash", **more):
    return {"seeding_scheme": scheme, **more}


def ours(vocab=VOCAB, **more):
    return watermark_of({"kind": "kgw", **more}, vocab)


def row_after(ids, row, *rules):
    """[V]: what the rules make of one row behind a text, -inf where nothing is left."""
    seat = Seat(rules, tuple(r.start(ids) for r in rules), history(ids))
    group, place = shaped(logits_of(row[None]), 0, seat)
    out = np.full(len(row), -np.inf)
    out[group.left(place).ids] = group.left(place).values
    return out


def theirs_after(ids, row, processor):
    return processor(torch.tensor([ids], dtype=torch.long), torch.tensor(row)[None])[0].numpy()


@pytest.mark.parametrize("scheme", BOTH)
@pytest.mark.parametrize("more", [
    {}, {"context_width": 2}, {"context_width": 4, "greenlist_ratio": 0.5},
    {"hashing_key": 2**61 + 1, "bias": 0.5}, {"hashing_key": 3, "greenlist_ratio": 0.35}])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_those_of_transformers(scheme, more, dtype):
    """Also where the text is too short, and where the products of selfhash overflow.

    Where none of the 40 likeliest is green theirs fails, so the shares are not small.
    """
    draw = np.random.default_rng(0)
    processor = WatermarkLogitsProcessor(VOCAB, "cpu", **fields(scheme, **more))
    rule = ours(**fields(scheme, **more))
    changed = 0
    for length in (1, 2, 3, 4, 20, 21, 22, 23):
        ids, row = draw.integers(0, VOCAB, length).tolist(), draw.normal(0, 3, VOCAB).astype(dtype)
        want, got = theirs_after(ids, row, processor), row_after(ids, row, rule)
        assert np.abs(got - want).max() < 1e-5
        changed += int((got != row).sum())
    assert changed > 0


@pytest.mark.parametrize("scheme", BOTH)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_after_a_cut_only_what_was_kept_is_raised(scheme, dtype):
    draw = np.random.default_rng(1)
    processor = WatermarkLogitsProcessor(VOCAB, "cpu", **fields(scheme))
    ids, row = [5, 6, 7], draw.normal(0, 3, VOCAB).astype(dtype)
    for k in (60, 20):
        before = np.where(np.argsort(np.argsort(-row)) < k, row, -np.inf)
        want = theirs_after(ids, before, processor)
        got = row_after(ids, row, top_k(k), ours(**fields(scheme)))
        assert (np.isfinite(got) == np.isfinite(before)).all()
        assert np.abs(got[before > -np.inf] - want[before > -np.inf]).max() < 1e-5


def test_a_vocabulary_as_large_as_that_of_a_real_model():
    row = np.random.default_rng(2).normal(0, 3, 49152).astype(np.float32)
    processor = WatermarkLogitsProcessor(49152, "cpu")
    got = row_after([1, 49000], row, ours(49152))
    assert np.abs(got - theirs_after([1, 49000], row, processor)).max() < 1e-5


def test_ids_beyond_the_vocabulary_are_never_green():
    for dtype in (np.float32, np.float64):
        for selfhash in (False, True):
            rule = kgw(2.0, data=Greens(10, 0.9, selfhash=selfhash))
            got = row_after([1, 2], np.zeros(50, dtype), rule)
            assert 0 < (got[:10] == 2).sum() <= 9 and not got[10:].any()
            assert len(row_after([1, 2], np.zeros(5, dtype), rule)) == 5


@pytest.mark.parametrize("scheme", BOTH)
@pytest.mark.parametrize("width", [1, 3])
def test_what_it_remembers_is_a_fold(scheme, width):
    rule, text = ours(**fields(scheme, context_width=width)), [4, 8, 15, 16, 23, 42]
    state = rule.start(text[:1])
    for i, token in enumerate(text[1:], 2):
        state = rule.after(state, token, FACT)
        assert state == rule.start(text[:i])


# ── detection ────────────────────────────────────────────────────────────────────────────────────
def theirs_in(ids, more, **how):
    config = PreTrainedConfig(vocab_size=VOCAB, bos_token_id=VOCAB + 1, is_encoder_decoder=False)
    config.vocab_size = VOCAB
    whole = {"greenlist_ratio": 0.25, "bias": 2.0, "hashing_key": 15485863,
             "seeding_scheme": "lefthash", "context_width": 1, **more}
    found = WatermarkDetector(config, "cpu", whole, **how)
    return found(torch.tensor([ids]), z_threshold=4.0, return_dict=True)


@pytest.mark.parametrize("scheme", BOTH)
@pytest.mark.parametrize("width", [1, 2])
def test_what_is_written_here_is_found_there_and_here(scheme, width):
    more = fields(scheme, context_width=width)
    rule = ours(**more)
    for rules, marked in (((temperature(0.9), rule), True), ((temperature(0.9),), False)):
        ids = marks_zoo.text(*rules)
        for repeats in (False, True):
            found = detect(ids, rule, repeats=repeats)
            there = theirs_in(ids, more, ignore_repeated_ngrams=not repeats)
            assert found.z == pytest.approx(there.z_score[0])
            assert found.p_value == pytest.approx(there.p_value[0])
            assert found.score == pytest.approx(there.green_fraction[0])
            assert found.counted == there.num_tokens_scored[0]
            assert found.marked == there.prediction[0] == marked
            assert found.z > 4 if marked else abs(found.z) < 4
        assert detect(ids, ours(**more, hashing_key=7)).marked is False


@pytest.mark.parametrize("scheme", BOTH)
def test_what_is_written_there_is_found_here(scheme):
    more = fields(scheme, context_width=2)
    processor = WatermarkLogitsProcessor(VOCAB, "cpu", **more)
    table, draw, ids = marks_zoo.table(), torch.Generator().manual_seed(0), [*PROMPT]
    for _ in range(NEW):
        row = processor(torch.tensor([ids]), table[ids[-1]][None])[0]
        ids.append(int(torch.multinomial(row.softmax(-1), 1, generator=draw)))
    found = detect(ids[len(PROMPT):], ours(**more), context=PROMPT)
    assert found.marked and found.z > 4
    assert found.counted > 0.9 * NEW


def test_the_prompt_says_what_is_green_and_is_not_judged():
    rule = ours(context_width=2)
    ids = marks_zoo.text(rule)
    alone, behind = detect(ids, rule), detect(ids, rule, context=PROMPT)
    assert behind.counted == alone.counted + 2
    assert detect(PROMPT, rule, context=ids).counted == len(PROMPT)


def test_a_window_that_repeats_counts_once_unless_told():
    rule, ids = ours(), [5, 6] * 100
    assert detect(ids, rule).counted == 2 and not detect(ids, rule).marked
    assert detect(ids, rule, repeats=True).counted == 199


def test_nothing_to_count_is_no_mark():
    for ids in ([], [5]):
        found = detect(ids, ours())
        assert (found.counted, found.z, found.p_value, found.marked) == (0, 0.0, 1.0, False)


@pytest.mark.parametrize("scheme", BOTH)
def test_drafts_and_definitions_write_the_same_text(scheme):
    rules = (temperature(0.8), top_k(50), ours(**fields(scheme, context_width=2)))
    with_drafts, known = marks_zoo.drafted(*rules, new=40)
    assert with_drafts == known == marks_zoo.text(*rules, new=40, dtype="float64")


@pytest.mark.parametrize("scheme", BOTH)
def test_every_choice_is_marked(scheme):
    rule = ours(**fields(scheme, context_width=2))
    found = marks_zoo.texts(rule, n=3)
    assert len({tuple(ids) for ids in found}) == 3
    assert all(detect(ids, rule).marked for ids in found)
