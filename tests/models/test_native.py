"""The compiled decoder: right for every feature, and the same bits however a text is fed."""
import numpy as np
import pytest
from models_zoo import FEATURES, WIDE, Held, hf_tiny, logits, native, rand_ids, span, tiny
from packed_zoo import compiled, weights_of

from unspool.core.errors import ModelError
from unspool.core.sockets import Span
from unspool.kernels.reading.facts import facts_of
from unspool.models.decoder import Decoder
from unspool.models.fingerprint import fingerprint

TYPES = {"F32": 1e-5, "Q8_0": 2e-4, "Q4_1": 2e-4, "Q4_0": 2e-4}  # with the relative error allowed
STORED = ["F32", "BF16", "F16", "Q4_0", "Q4_1", "Q8_0"]


def rows(model, ids, lease=None):
    return model.score([span(ids, lease)]).rows().copy()


def one_by_one(model, ids, sizes=None):
    lease, out, at = Held(), [], 0
    for size in sizes or [1] * len(ids):
        out.append(rows(model, ids[at:at + size], lease))
        at += size
        lease.length = at
    return np.concatenate(out)


def same(a, b):
    assert len(a) and np.isfinite(a).all()
    np.testing.assert_array_equal(a.view(np.int32), b.view(np.int32))


def as_stored(decoder, type):
    """The decoder of torch with the numbers that the compiled one reads."""
    import torch
    from packed_zoo import tensor_of

    weights = {name: torch.from_numpy(tensor_of(name, value.numpy(), type).dequantised().copy())
               for name, value in weights_of(decoder)}
    return Decoder(decoder.config, weights, fingerprint(decoder.config, []))


@pytest.fixture(params=FEATURES, scope="module")
def pair(request):
    family, features = FEATURES[request.param]
    ours = native(hf_tiny(family, **features))
    model = compiled(ours)
    yield ours, model
    model.close()


def test_logits_are_the_reference_s_for_every_feature(pair):
    reference, model = pair
    ids = rand_ids(3, 70)[0]
    want = logits(reference, ids).numpy()
    assert want.std() > 0.1
    np.testing.assert_allclose(rows(model, ids), want, atol=2e-5 * np.abs(want).max(), rtol=0)


def test_bits_do_not_depend_on_chunks_for_any_feature(pair):
    ids = rand_ids(4, 40)[0]
    whole = rows(pair[1], ids)
    for sizes in (None, [7, 1, 20, 12], [39, 1]):
        same(one_by_one(pair[1], ids, sizes), whole)


@pytest.fixture(params=STORED, scope="module")
def stored(request):
    model = compiled(tiny(dtype="float32"), type=request.param)
    yield model
    model.close()


@pytest.mark.parametrize("type", TYPES)
def test_logits_of_stored_types(type):
    decoder = tiny(dtype="float32")
    model = compiled(decoder, type=type)
    ids = rand_ids(5, 33)[0]
    want = logits(as_stored(decoder, type), ids).numpy()
    assert np.linalg.norm(rows(model, ids) - want) <= TYPES[type] * np.linalg.norm(want)
    model.close()


def test_bits_do_not_depend_on_company_or_slot(stored):
    texts = rand_ids(5, 17, 3, 24, 1)
    alone = [rows(stored, ids) for ids in texts]
    for order in ((0, 1, 2, 3), (3, 2, 1, 0), (1, 0, 1), (2,) * 20):
        got = stored.score([span(texts[i]) for i in order]).rows().copy()
        same(got, np.concatenate([alone[i] for i in order]))


def test_bits_do_not_depend_on_threads():
    decoder = tiny(dtype="float32")
    ids = rand_ids(6, 50)[0]
    models = [compiled(decoder, type="Q4_1", threads=n) for n in (1, 2, 3, 5)]
    first = rows(models[0], ids)
    for model in models:
        same(rows(model, ids), first)
        same(one_by_one(model, ids), first)
        model.close()


@pytest.mark.parametrize("kv", ["bf16", "int8"])
def test_smaller_keys_are_close_noted_and_as_exact_in_themselves(kv):
    decoder = tiny(dtype="float32")
    exact, small = compiled(decoder), compiled(decoder, kv=kv)
    ids = rand_ids(7, 60)[0]
    want, got = rows(exact, ids), rows(small, ids)
    assert 0 < np.abs(got - want).max() < 0.05 * np.abs(want).max()
    assert any(kv in note for note in small.notes) and small.fingerprint != exact.fingerprint
    same(one_by_one(small, ids), got)
    exact.close()
    small.close()


@pytest.mark.parametrize("family", WIDE)
def test_a_shared_store_goes_on_as_its_own_text(family):
    model = compiled(tiny(family, dtype="float32", **WIDE[family]))
    a, b, c = rand_ids(8, 20, 9, 9)
    lease = Held()
    rows(model, a, lease)
    lease.length = len(a)
    fork = Held(len(a))
    fork.store = lease.store.share(len(a))
    left, right = rows(model, b, lease), rows(model, c, fork)
    same(left, rows(model, [*a, *b])[len(a):])
    same(right, rows(model, [*a, *c])[len(a):])
    model.close()


def test_a_long_text_over_many_segments_and_few_threads():
    """Attention of one row is shared out by segments; the bits are those of the whole prompt."""
    decoder = tiny(dtype="float32", max_position_embeddings=2048)
    ids = rand_ids(9, 1100)[0]
    model = compiled(decoder, threads=2)
    whole = rows(model, ids)
    same(one_by_one(model, ids, [1000, *[1] * 100]), whole)
    np.testing.assert_allclose(whole, logits(as_stored(decoder, "F32"), ids).numpy(), atol=2e-3)
    model.close()


def test_forwards_without_rows_and_with_few():
    model = compiled(tiny(dtype="float32"))
    a, b = rand_ids(10, 12, 6)
    lease = Held()
    assert model.score([span(a, lease, rows=0)]).rows().shape == (0, 64)
    lease.length = 12
    got = model.score([Span(lease, b, 12, 2), span(b, rows=1)]).rows().copy()
    same(got[:2], rows(model, [*a, *b])[-2:])
    same(got[2:], rows(model, b)[-1:])
    model.close()


def test_a_nan_stays_in_its_own_row():
    """A damaged embedding spoils the texts that use it, and no other."""
    decoder = tiny(dtype="float32")
    clean = compiled(decoder)
    a, b = [3, 4, 5], [7, 8, 9, 10]
    want = rows(clean, b)
    decoder.embedding[4] = float("nan")
    model = compiled(decoder)
    got = model.score([span(a), span(b), span([4] * 5)]).rows().copy()
    assert np.isfinite(got[0]).all() and np.isnan(got[1:3]).all() and np.isnan(got[7:]).all()
    same(got[3:7], want)
    clean.close()
    model.close()


def test_fast_numerics_differ_and_are_close():
    decoder = tiny(dtype="float32")
    exact, fast = compiled(decoder, type="Q8_0"), compiled(decoder, "fast", type="Q8_0")
    ids = rand_ids(11, 30)[0]
    want, got = rows(exact, ids), rows(fast, ids)
    assert fast.numerics == "fast" and fast.fingerprint != exact.fingerprint
    assert 0 < np.linalg.norm(got - want) < 0.05 * np.linalg.norm(want)
    exact.close()
    fast.close()


def test_quantising_at_load_is_noted():
    decoder = tiny(dtype="float32")
    plain, rounded = compiled(decoder), compiled(decoder, quantize="int8")
    ids = rand_ids(12, 30)[0]
    want, got = rows(plain, ids), rows(rounded, ids)
    assert 0 < np.linalg.norm(got - want) < 0.05 * np.linalg.norm(want)
    assert any("rounded to 8 bits" in note for note in rounded.notes)
    assert rounded.weights.nbytes < plain.weights.nbytes / 3
    plain.close()
    rounded.close()


def test_types_without_a_kernel_are_unpacked_exactly_and_noted():
    decoder = tiny(dtype="float32")
    model = compiled(decoder, type="Q5_1")
    ids = rand_ids(13, 30)[0]
    want = logits(as_stored(decoder, "Q5_1"), ids).numpy()
    np.testing.assert_allclose(rows(model, ids), want, atol=2e-5 * np.abs(want).max(), rtol=0)
    assert any("Q5_1" in note for note in model.notes)
    model.close()


def test_a_closed_model_holds_nothing_and_says_so():
    model = compiled(tiny(dtype="float32"))
    rows(model, [3, 4])
    model.close()
    model.close()
    with pytest.raises(ModelError, match="closed"):
        model.score([span([3])])


@pytest.mark.parametrize("vocab", [64, 61])
def test_the_head_finds_the_facts_that_a_finished_row_has(vocab):
    """Fused with the projection or not: the same bits, also with a smaller tokenizer."""
    model = compiled(tiny(dtype="float32", vocab_size=64))
    model.vocab = vocab
    scores = model.score([span(ids) for ids in rand_ids(14, 9, 30, low=2, vocab=60)])
    assert scores.rows().shape == (39, vocab)
    want = facts_of(scores.rows())
    np.testing.assert_array_equal(scores.facts().table[:, :5], want.table[:, :5])
    np.testing.assert_array_equal(scores.facts().parts, want.parts)
    model.close()
