"""Our own families against transformers, and every way of feeding a text against the whole text."""

import pytest
import torch
from models_zoo import (
    FEATURES,
    WIDE,
    Held,
    greedy,
    hf_logits,
    hf_tiny,
    incremental,
    logits,
    markov,
    native,
    rand_ids,
    span,
    tiny,
)

from unspool.core.prefix import prefix
from unspool.core.sockets import Reader, Span
from unspool.memories import MEMORIES


@pytest.fixture(params=FEATURES, scope="module")
def pair(request):
    family, features = FEATURES[request.param]
    theirs = hf_tiny(family, **features)
    return theirs, native(theirs)


def test_logits_are_those_of_transformers(pair):
    theirs, ours = pair
    ids = rand_ids(3, 70)[0]
    want = hf_logits(theirs, ids)
    assert want.std() > 0.1  # not all alike
    torch.testing.assert_close(logits(ours, ids), want, rtol=0, atol=1e-4)


def test_a_packed_ragged_batch_gives_each_row_its_own_logits(pair):
    theirs, ours = pair
    rows = rand_ids(1, 13, 4, 1, 30)
    want = torch.cat([hf_logits(theirs, ids)[-2:] for ids in rows])
    spans = [span(ids, rows=min(2, len(ids))) for ids in rows]
    got = torch.from_numpy(ours.score(spans).rows())
    torch.testing.assert_close(got, want, rtol=0, atol=1e-4)


@pytest.mark.parametrize("family", WIDE)
def test_chunks_and_single_tokens_give_the_whole_text_s_logits(family):
    model = tiny(family, **WIDE[family])
    ids = rand_ids(4, 40)[0]
    whole = logits(model, ids)
    assert whole.dtype == torch.float64
    for sizes in (None, [7, 1, 20, 12], [39, 1], [8, 8, 8, 8, 8], [9, 31]):
        torch.testing.assert_close(incremental(model, ids, sizes), whole, rtol=0, atol=1e-10)


@pytest.mark.parametrize("family", WIDE)
def test_a_text_s_logits_do_not_depend_on_its_company(family):
    model = tiny(family, **WIDE[family])
    a, b, c = rand_ids(5, 17, 3, 24)
    alone = [logits(model, ids) for ids in (a, b, c)]
    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 1)):
        got = model.score([span((a, b, c)[i]) for i in order]).rows()
        want = torch.cat([alone[i] for i in order])
        torch.testing.assert_close(torch.from_numpy(got), want, rtol=0, atol=1e-10)


def test_a_text_that_joins_in_the_middle_changes_no_other():
    model = tiny()
    a, b = rand_ids(6, 9, 31)
    want = logits(model, a)[-1]
    lease = Held()
    model.score([span(a[:-1], lease, rows=0)])
    lease.length = len(a) - 1
    got = model.score([span(b, rows=0), span(a[-1:], lease)]).rows()
    assert got.shape == (1, 64)
    torch.testing.assert_close(torch.from_numpy(got[0]), want, rtol=0, atol=1e-10)


def test_later_tokens_change_no_earlier_logits():
    model = tiny()
    ids = rand_ids(7, 20)[0]
    base = logits(model, ids)
    for t in range(1, 20):
        other = [*ids[:t], (ids[t] + 1) % 64, *ids[t + 1 :]]
        got = logits(model, other)
        torch.testing.assert_close(got[:t], base[:t], rtol=0, atol=1e-12)
        assert (got[t] - base[t]).abs().max() > 1e-6


@pytest.mark.parametrize("name", MEMORIES)
def test_b14_forked_texts_read_their_own_keys(name):
    """Four texts from one prefix, taken on in another order, against each text read afresh."""
    for model in (tiny(), tiny("mistral", sliding_window=8)):
        memory = MEMORIES[name](model.context)
        reader = Reader(model.fingerprint, model.numerics)
        head = rand_ids(8, 11)[0]
        texts = [prefix(head + tail) for tail in ([3], [5], [9], [3, 3], [3, 5], [5, 9, 2])]
        for text in [*texts, *(texts[i] for i in (2, 0, 0, 5))]:
            lease = memory.known(reader, text)
            start = lease.length
            row = model.score([Span(lease, text.last(text.length - start), start, 1)]).rows()[0]
            want = logits(model, text.tokens())[-1]
            torch.testing.assert_close(torch.from_numpy(row), want, rtol=0, atol=1e-10)
            memory.settle(lease, text)


def test_b01_rows_of_unequal_length_go_on_as_alone():
    theirs = hf_tiny()
    model = native(theirs)
    a, b = rand_ids(1, 13, 4)
    assert b == [7, 19, 36, 10]
    alone = [greedy(model, ids, 16) for ids in (a, b)]
    assert alone[1] == [30, 20, 38, 34, 60, 33, 20, 47, 11, 20, 47, 34, 28, 47, 11, 20]
    for order in ((0, 1), (1, 0)):
        rows, leases = [list((a, b)[i]) for i in order], [Held(), Held()]
        todo = [list(row) for row in rows]
        for _ in range(16):
            got = torch.from_numpy(
                model.score([span(t, x, 1) for t, x in zip(todo, leases, strict=True)]).rows()
            )
            for i in range(2):
                want = hf_logits(theirs, rows[i])[-1]
                torch.testing.assert_close(got[i], want, rtol=0, atol=1e-4)
                leases[i].length += len(todo[i])
                todo[i] = [int(got[i].argmax())]
                rows[i] += todo[i]
        assert [r[-16:] for r in rows] == [alone[i] for i in order]


@pytest.mark.parametrize("length", range(1, 41))
def test_b05_window_of_eight_at_every_length(length):
    theirs = hf_tiny("mistral", sliding_window=8)
    ours = native(theirs)
    ids = rand_ids(9, 40)[0][:length]
    want = hf_logits(theirs, ids)
    torch.testing.assert_close(logits(ours, ids), want, rtol=0, atol=1e-4)
    torch.testing.assert_close(incremental(ours, ids), want, rtol=0, atol=1e-4)


def test_b05_a_query_feels_exactly_its_eight_keys():
    model = tiny("mistral", sliding_window=8, num_hidden_layers=1)
    ids = rand_ids(5, 20, low=1)[0]
    base = logits(model, ids)
    for query in (12, 19):
        felt = []
        for key in range(20):
            other = [*ids]
            other[key] = (other[key] + 17) % 64
            if (logits(model, other)[query] - base[query]).abs().max() > 1e-6:
                felt.append(key)
        assert felt == list(range(query - 7, query + 1))


@pytest.mark.parametrize("name", ["dense", "full"])
def test_b07_room_for_more_text_changes_nothing(name):
    """A memory with far more room than the text needs gives the same row as one without any."""
    model, text = tiny(), prefix(rand_ids(1, 13)[0])
    memory, reader = MEMORIES[name](model.context), Reader(model.fingerprint, model.numerics)
    for length in range(1, 14):
        part = text.at(length)
        lease = memory.known(reader, part)
        row = model.score([Span(lease, [part.token], lease.length, 1)]).rows()[0]
        assert lease.length == length - 1
        [kept] = lease.store.parts
        spare = [kept.keys[0][length:], kept.values[0][length:]]
        assert len(spare[0]) and len(spare[1])
        with torch.inference_mode():
            for room in spare:
                room.fill_(torch.nan)
        torch.testing.assert_close(
            torch.from_numpy(row), logits(model, part.tokens())[-1], rtol=0, atol=1e-10
        )
        memory.settle(lease, part)


def test_b08_one_token_beside_a_long_text():
    model = native(hf_tiny())
    want = logits(model, [5])
    got = torch.from_numpy(model.score([span(range(1, 35)), span([5])]).rows())
    assert got.isfinite().all()
    torch.testing.assert_close(got[-1:], want, rtol=0, atol=1e-4)


def test_b45_a_head_wider_than_the_vocabulary_is_cut():
    model = tiny()
    model.head[60:] = 100.0
    ids = rand_ids(1, 13)[0]
    before = logits(model, ids)
    model.vocab = 60
    after = logits(model, ids)
    assert after.shape == (13, 60)
    torch.testing.assert_close(after, before[:, :60])


def test_an_exact_model_gives_its_table():
    table = torch.randn(7, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    ids = [3, 3, 0, 6, 1]
    torch.testing.assert_close(logits(markov(table), ids), table[ids], rtol=0, atol=1e-12)


def test_no_rows_wanted_is_no_rows():
    assert tiny().score([span([1, 2, 3], rows=0)]).rows().shape == (0, 64)


def test_rows_are_numpy_without_a_copy():
    scores = tiny().score([span([1, 2, 3])])
    assert scores.rows().ctypes.data == scores.logits.data_ptr()


def test_a_closed_model_holds_no_weights():
    model = tiny()
    model.close()
    assert model.stack == [] and model.head.numel() == 0
