"""Hidden states and inner layers: transformers' numbers, the same bits however a text is fed."""
import numpy as np
import pytest
import torch
from models_zoo import WIDE, Held, hf_tiny, native, rand_ids, span, tiny
from packed_zoo import compiled

from unspool.core.errors import ModelError
from unspool.core.prefix import prefix
from unspool.core.sockets import Reader
from unspool.memories import MEMORIES
from unspool.models.load import load_model
from unspool.models.planes import asked

TEXTS = rand_ids(21, 17, 3, 24, 1)


def deep(ids, lease=None, rows=None, layers=(0, 1)):
    made = span(ids, lease, rows)
    made.hidden, made.layers = True, tuple(layers)
    return made


def theirs(model, ids):
    """Last hidden states, and the logits of the layers 0 and 1, of transformers' own forward."""
    with torch.inference_mode():
        out = model(torch.tensor([ids]), output_hidden_states=True)
        head = model.get_output_embeddings()
        inner = [head(out.hidden_states[j][0]) for j in (0, 1)]
    return [x.numpy() for x in (out.hidden_states[-1][0], *inner)]


def read(model, ids, lease=None, rows=None):
    """Logits, states, and the logits of both layers of one text."""
    scores = model.score([deep(ids, lease, rows)])
    return [scores.rows().copy(), scores.hidden(0), scores.inner(0, 0), scores.inner(0, 1)]


def close(found, want):
    assert want.std() > 0.1 and found.shape == want.shape
    np.testing.assert_allclose(found, want, rtol=0, atol=3e-5 * np.abs(want).max())


def same(found, want):
    assert found.size and np.isfinite(found).all()
    np.testing.assert_array_equal(found.view(np.int32), want.view(np.int32))


def cosines(states):
    """By the definition, in float64."""
    unit = states.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=-1, keepdims=True)
    return [float((unit[:i] @ unit[i]).max()) if i else -1.0 for i in range(len(unit))]


KINDS = {"decoder": native, "compiled": lambda model: compiled(native(model)), "hf": load_model}


@pytest.fixture(params=[(kind, family) for kind in KINDS for family in WIDE], ids="-".join,
                scope="module")
def pair(request):
    kind, family = request.param
    reference = hf_tiny(family, **WIDE[family])
    model = KINDS[kind](reference)
    yield reference, model
    model.close()


def test_states_and_inner_logits_are_those_of_transformers(pair):
    reference, model = pair
    assert (model.layers, model.width) == (2, 32)
    scores = model.score([deep(ids, rows=min(len(ids), 5)) for ids in TEXTS])
    for number, ids in enumerate(TEXTS):
        states, *inner = theirs(reference, ids)
        close(scores.hidden(number), states[-5:])
        for layer in (0, 1):
            close(scores.inner(number, layer), inner[layer][-5:])
        assert scores.similarity(number) == pytest.approx(cosines(states)[-5:], abs=1e-6)


def test_a_text_in_chunks_finds_the_states_of_earlier_forwards(pair):
    reference, model = pair
    ids = TEXTS[2]
    want = cosines(theirs(reference, ids)[0])
    lease, found = Held(), []
    model.score([deep(ids[:9], lease, rows=0)])
    for start, end in ((9, 15), (15, 16), (16, 24)):
        lease.length = start
        scores = model.score([deep(TEXTS[0]), deep(ids[start:end], lease)])
        found += scores.similarity(1)
    assert found == pytest.approx(want[9:], abs=1e-6)


@pytest.mark.parametrize("name", MEMORIES)
def test_every_memory_gives_forked_texts_their_own_states(name, pair):
    reference, model = pair
    memory, reader = MEMORIES[name](model.context), Reader("it", "default", planes="hidden")
    head = TEXTS[2][:11]
    for tail in ([3], [5], [3, 5], [9, 9, 2], [5]):
        text = prefix([*head, *tail])
        lease = memory.known(reader, text)
        ids = text.last(text.length - lease.length)
        asked_for = deep(ids, lease, rows=1)
        asked_for.start = lease.length
        scores = model.score([asked_for])
        if not memory.keeps:
            memory.settle(lease, None)
        states = theirs(reference, text.tokens())[0]
        close(scores.hidden(0), states[-1:])
        assert scores.similarity(0) == pytest.approx(cosines(states)[-1:], abs=1e-6)
        if memory.keeps:
            memory.settle(lease, text)
    memory.clear()


def test_what_was_read_outlives_the_next_forward(pair):
    model = pair[1]
    scores = model.score([deep(TEXTS[0])])
    kept = [scores.hidden(0), scores.inner(0, 1)]
    before = [array.copy() for array in kept]
    model.score([deep(TEXTS[2])])
    for array, copy in zip(kept, before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_only_who_asks_is_told(pair):
    model = pair[1]
    some = span(TEXTS[1])
    some.layers = (1,)
    scores = model.score([span(TEXTS[0]), some, deep(TEXTS[3], layers=())])
    assert scores.rows().shape == (21, 64) and scores.inner(1, 1).shape == (3, 64)
    assert scores.hidden(2).shape == (1, 32) and scores.similarity(2) == [-1.0]
    for number in (0, 1):
        with pytest.raises(ModelError, match=f"span {number} did not ask for hidden states"):
            scores.hidden(number)
        with pytest.raises(ModelError, match=f"span {number} did not ask for hidden states"):
            scores.similarity(number)
    for number, layer in ((0, 1), (1, 0), (2, 1)):
        with pytest.raises(ModelError, match=f"did not ask for the inner layer {layer}"):
            scores.inner(number, layer)
    with pytest.raises(ModelError, match=r"inner layer 2 .* they run from 0 to 1"):
        model.score([deep(TEXTS[0], layers=(0, 2))])


def test_what_spans_ask_for_is_joined():
    assert asked([span([1]), span([2])], 4, 8) == (False, ())
    assert asked([span([1]), span([2])], 0, 0) == (False, ())
    assert asked([deep([1], layers=(3, 1)), deep([2], layers=(0, 1))], 4, 8) == (True, (0, 1, 3))
    with pytest.raises(ModelError, match="inner layer -1"):
        asked([deep([1], layers=(-1,))], 4, 8)
    with pytest.raises(ModelError, match="none can be"):
        asked([deep([1], layers=(0,))], 0, 8)
    with pytest.raises(ModelError, match="hidden states of this model cannot be read"):
        asked([deep([1], layers=())], 0, 0)


# ── the compiled model ───────────────────────────────────────────────────────────────────────────
@pytest.fixture(params=["F32", "Q4_1", "Q8_0"], scope="module")
def stored(request):
    model = compiled(tiny(dtype="float32"), type=request.param)
    yield model
    model.close()


def test_bits_do_not_depend_on_company_or_chunks(stored):
    alone = [read(stored, ids) for ids in TEXTS]
    likeness = [stored.score([deep(ids)]).similarity(0) for ids in TEXTS]
    for order in ((3, 2, 1, 0), (1, 0, 1), (2,) * 9):
        scores = stored.score([deep(TEXTS[i]) for i in order])
        for number, i in enumerate(order):
            same(scores.hidden(number), alone[i][1])
            same(scores.inner(number, 0), alone[i][2])
            same(scores.inner(number, 1), alone[i][3])
            assert scores.similarity(number) == likeness[i]
    for sizes in ([1] * 24, [7, 1, 16]):
        lease, found, parts = Held(), [], []
        for size in sizes:
            scores = stored.score([deep(TEXTS[2][lease.length :][:size], lease)])
            parts.append([scores.hidden(0), scores.inner(0, 0), scores.inner(0, 1)])
            found += scores.similarity(0)
            lease.length += size
        for kind, want in zip(zip(*parts, strict=True), alone[2][1:], strict=True):
            same(np.concatenate(kind), want)
        assert found == likeness[2]


def test_asking_changes_no_bit_of_the_logits(stored):
    plain = stored.score([span(ids) for ids in TEXTS]).rows().copy()
    same(stored.score([deep(ids) for ids in TEXTS]).rows(), plain)
    same(stored.score([deep(ids, layers=()) for ids in TEXTS]).rows(), plain)
    same(stored.score([span(ids) for ids in TEXTS]).rows(), plain)


def test_bits_do_not_depend_on_threads():
    decoder = tiny(dtype="float32")
    models = [compiled(decoder, type="Q4_1", threads=n) for n in (1, 3)]
    first, second = ([*read(model, TEXTS[2])] for model in models)
    for a, b in zip(first, second, strict=True):
        same(a, b)
    for model in models:
        model.close()


def operations(program):
    """Which kernel, over what and how much of it; the arguments' addresses differ."""
    return [tuple(int(word) for word in row[[0, 2, 3, 4]]) for row in program.words[1:]]


def test_forwards_that_do_not_ask_run_the_program_that_they_ran():
    model = compiled(tiny(dtype="float32"))
    model.score([span(TEXTS[2])])
    forward = model.forward
    whole, silent = forward.whole, forward.silent
    words, before = whole.words[1:].copy(), operations(whole)
    for layers in ((), (1,), (0,), (0, 1)):
        model.score([deep(TEXTS[2], layers=layers)])
    assert forward.program(5) is whole and forward.program(0) is silent
    assert forward.program(0, layers=(1,)) is silent  # no row wants them
    np.testing.assert_array_equal(whole.words[1:], words)
    deeper = operations(forward.program(5, True, (0, 1)))
    for operation in before:
        deeper.remove(operation)
    assert len(deeper) == 1 + 2 * 2  # the norm; of two layers the encoding and the product
    model.close()


def test_few_programs_serve_many_wishes():
    model = compiled(tiny(dtype="float32", num_hidden_layers=5, vocab_size=64))
    ids = TEXTS[2]
    for layers in ((), (4,), (0, 1), (3,), (1, 2), (2, 4), (0,), (0, 1, 2, 3, 4), (3, 1)) * 3:
        scores = model.score([deep(ids, layers=layers)])
        want = compiled_inner(model, ids, layers)
        for layer in layers:
            same(scores.inner(0, layer), want[layer])
    assert len(model.forward.deep) <= 6 and len(model.team.programs) < 16
    model.close()


def compiled_inner(model, ids, layers):
    """Each layer's logits from a forward of its own."""
    return {j: model.score([deep(ids, layers=(j,))]).inner(0, j) for j in layers}


def test_a_smaller_tokenizer_narrows_the_inner_logits():
    model = compiled(tiny(dtype="float32"))
    wide = read(model, TEXTS[0])
    model.vocab = 61
    narrow = read(model, TEXTS[0])
    for j in (0, 2, 3):
        same(narrow[j], wide[j][:, :61])
    model.close()


def test_growing_forwards_keep_giving_them():
    """Buffers move; the programs follow."""
    model = compiled(tiny(dtype="float32", max_position_embeddings=1024))
    ids = rand_ids(22, 600)[0]
    states = read(model, ids)[1]
    for length in (1, 40, 300, 600, 5):
        same(read(model, ids[:length])[1], states[:length])
    model.close()


def test_fast_numerics_give_close_ones():
    decoder = tiny(dtype="float32")
    exact, fast = compiled(decoder, type="Q8_0"), compiled(decoder, "fast", type="Q8_0")
    for want, got in zip(read(exact, TEXTS[2]), read(fast, TEXTS[2]), strict=True):
        assert 0 < np.linalg.norm(got - want) < 0.1 * np.linalg.norm(want)
    exact.close()
    fast.close()
