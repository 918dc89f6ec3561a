"""B36 log-probabilities of a prompt, B38 raw and processed, B45 a head wider than the tokenizer."""
import json
import math

import numpy as np
import pytest
import torch
from bug_zoo import A, B, asked, letters, loaded, run, streamed, tl
from models_zoo import cycle, hf_tiny, markov, save
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models

import unspool
from unspool.core.errors import PromptError
from unspool.engine.scheduler import Scheduler
from unspool.rules import temperature, top_k
from unspool.strategies import Force


# ── B36 ──────────────────────────────────────────────────────────────────────────────────────────
def one_pass(ids):
    """log P(id t | the ids before it), from one plain forward; None for the first."""
    with torch.no_grad():
        rows = hf_tiny()(torch.tensor([ids])).logits[0].log_softmax(-1)
    return [None, *(rows[t - 1, ids[t]].item() for t in range(1, len(ids)))]


def is_shifted_right(score, ids):
    want = one_pass(ids)
    assert [t.id for t in score.tokens] == ids and score.tokens[0].logprob is None
    assert [t.logprob for t in score.tokens[1:]] == pytest.approx(want[1:], abs=1e-4)
    assert score.logprob == pytest.approx(sum(want[1:]), abs=1e-3)


@pytest.mark.parametrize("chunk", [2, 5, 512])
@pytest.mark.parametrize("memory", ["dense", "none"])
def test_b36_entry_t_belongs_to_token_t(made, memory, chunk):
    lm = loaded(made, tl(), memory=memory, scheduler=Scheduler(chunk=chunk))
    for ids in (A, B):
        is_shifted_right(lm.score(ids), ids)
    for score, ids in zip(lm.score([A, B]), (A, B), strict=True):  # one batch
        is_shifted_right(score, ids)


def test_b36_after_a_given_prompt_every_token_has_one(made):
    lm = loaded(made, tl())
    score = lm.score(A[6:], given=A[:6])
    assert [t.logprob for t in score.tokens] == pytest.approx(one_pass(A)[6:], abs=1e-4)


def test_b36_texts_do_not_accumulate(made):
    lm = loaded(made, markov(cycle(12)), letters())
    assert [t.text for t in lm.score("abcdef").tokens] == list("abcdef")
    events = [e for e in lm.stream("abc", max_new_tokens=3) if e.type == "commit"]
    assert [t.text for e in events for t in e.tokens] == ["d", "e", "f"]
    assert [t.text for t in lm.generate("abc", max_new_tokens=3).tokens] == ["d", "e", "f"]
    chance = -math.log1p(11 * math.exp(-8))
    assert [t.logprob for t in lm.score("abcdef").tokens[1:]] == pytest.approx([chance] * 5)


def test_b36_the_bytes_of_the_tokens_are_those_of_the_text(smol):
    text = "\n\n9 lives 🤷"
    score = smol.score(text)
    ids = smol.tokenizer.encode(text, start=False)
    assert [t.id for t in score.tokens] == ids
    assert b"".join(smol.tokenizer.piece(i) for i in ids) == text.encode()
    scored = b"".join(t.bytes for t in score.output.tokens)
    assert text.encode().endswith(scored) and score.bytes == len(scored)


def test_b36_a_lone_end_token_has_an_entry(smol):
    score = smol.score([2], given="The end.")
    assert [t.id for t in score.tokens] == [2] and score.tokens[0].logprob < 0


# ── B38 ──────────────────────────────────────────────────────────────────────────────────────────
def row():
    return markov(torch.tensor([[2.0, 1.0, 0.0]] * 3, dtype=torch.float64))


@pytest.mark.parametrize("token, raw, processed", [
    (0, -0.4076, -0.1269), (1, -1.4076, -2.1269), (2, -2.4076, -math.inf)])
def test_b38_raw_and_processed_of_every_token(token, raw, processed):
    [job] = run(row(), asked([0], 1, Force((token,)), (temperature(0.5), top_k(2))))
    [fact] = job.branches[0].facts
    assert fact.logprob == pytest.approx(raw, abs=1e-4)
    assert fact.processed == pytest.approx(processed, abs=1e-4)


def test_b38_both_are_given_by_name(made):
    lm = loaded(made, row())
    out = lm.generate([0], max_new_tokens=5, temperature=0.5, top_k=2, seed=3, logprobs=3)
    raw, processed = [-0.4076, -1.4076, -2.4076], [-0.1269, -2.1269]
    for token in out.tokens:
        assert token.logprob == pytest.approx(raw[token.id], abs=1e-4)
        assert token.processed_logprob == pytest.approx(processed[token.id], abs=1e-4)
        assert [t.logprob for t in token.top] == pytest.approx(raw, abs=1e-4)
        assert sum(t.prob for t in token.top) == pytest.approx(1, abs=1e-5)
    assert out.logprob == pytest.approx(sum(t.logprob for t in out.tokens))
    assert out.score == pytest.approx(sum(t.processed_logprob for t in out.tokens))


def test_b38_streamed_they_are_the_same(made):
    lm = loaded(made, tl())
    ask = {"temperature": 0.8, "top_k": 20, "seed": 5, "max_new_tokens": 12}
    told = [t for e in lm.stream(A, **ask) if e.type == "commit" for t in e.tokens]
    want = lm.generate(A, **ask).tokens
    assert [t.id for t in told] == [t.id for t in want]
    for one, other in zip(told, want, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=1e-9)
        assert one.processed_logprob == pytest.approx(other.processed_logprob, abs=1e-9)


def test_b38_a_lone_end_token_has_one_entry(made):
    lm = loaded(made, row(), letters(3), ends=[0])
    _, out = streamed(lm, "b", max_new_tokens=5)
    assert (out.token_ids, out.text, out.finish_reason) == ([0], "", "stop")
    assert [t.logprob for t in out.tokens] == pytest.approx([-0.4076], abs=1e-4)


# ── B45 ──────────────────────────────────────────────────────────────────────────────────────────
@pytest.fixture
def padded(tmp_path, made):
    """TL(0) whose head has 64 rows, of which 60 .. 63 are always the likeliest or unlikeliest."""
    def write(size):
        model = hf_tiny()
        with torch.no_grad():
            for i, sign in ((60, 1), (61, -1), (62, 1), (63, -1)):
                model.lm_head.weight[i] = sign * 100 * model.lm_head.weight[i % 2]
        folder = save(model, tmp_path)
        backend = Backend(models.BPE(vocab={chr(200 + i): i for i in range(size)}, merges=[]))
        backend.decoder = decoders.Fuse()
        backend.save(str(folder / "tokenizer.json"))
        (folder / "tokenizer_config.json").write_text(json.dumps({}))
        made.append(unspool.load(folder))
        return made[-1]

    return write


WAYS = {"greedy": {}, "hot": {"temperature": 5.0, "seed": 1}, "beam": {"num_beams": 4, "n": 4},
        "min_p": {"temperature": 5.0, "min_p": 0.01, "seed": 2},
        "n": {"temperature": 5.0, "n": 5, "seed": 3}}


@pytest.mark.parametrize("way", WAYS)
def test_b45_no_id_beyond_the_tokenizer_is_written(padded, way):
    lm = padded(60)
    assert hf_logits_are_largest_beyond(A)
    out = lm.generate(A, max_new_tokens=16, logprobs=8, **WAYS[way])
    for choice in out:
        assert len(choice.token_ids) == 16 and max(choice.token_ids) < 60
        assert max(t.id for token in choice.tokens for t in token.top) < 60
        assert len(choice.text) == 16


def hf_logits_are_largest_beyond(ids):
    """The case does discriminate: without the cut, 60 .. 63 would win."""
    model = hf_tiny()
    with torch.no_grad():
        hidden = model.model(torch.tensor([ids])).last_hidden_state[0]
        two = hidden @ model.lm_head.weight[:2].T * 100
        rest = hidden @ model.lm_head.weight[:60].T
    return bool((two.abs().max(-1).values > rest.max(-1).values).all())


def test_b45_probabilities_are_over_the_ids_that_exist(padded):
    lm = padded(60)
    dist = lm.next(A)
    assert len(dist.probs) == 60 and dist.probs.sum() == pytest.approx(1)
    with torch.no_grad():
        row = hf_tiny()(torch.tensor([A])).logits[0, -1, :60].log_softmax(-1)
    assert dist.logprobs == pytest.approx(row.numpy(), abs=1e-3)
    for bad in (60, 63, 64):
        with pytest.raises(PromptError, match=rf"{bad}.*59"):
            lm.generate([5, bad])


def test_b45_a_tokenizer_wider_than_the_head_loads(padded):
    lm = padded(66)
    out = lm.generate(A, max_new_tokens=16, temperature=5.0, seed=1)
    assert max(out.token_ids) < 64 and len(lm.next(A).probs) == 64
    for prompt in ([5, 64], [65], chr(200 + 65)):
        with pytest.raises(PromptError, match=r"6[45].*63"):
            lm.generate(prompt)
    assert np.isfinite(lm.score([5, 63]).logprob)
