"""B01 pads attended to, B05 windows, B07 room that changes the text, B14 beams and memory.

B05, B08 and B09 are also held by the models' own tests, row by row.
"""
import pytest
import torch
from bug_zoo import A, B, asked, loaded, run, text, texts, tl
from models_zoo import hf_gpt2, hf_tiny

from unspool.core.errors import ParameterError
from unspool.engine.scheduler import Scheduler
from unspool.models.load import load_model
from unspool.rules import greedy
from unspool.strategies import Beam

GREEDY = (greedy(),)
ROW_B = [30, 20, 38, 34, 60, 33, 20, 47, 11, 20, 47, 34, 28, 47, 11, 20]


def hf_greedy(model, ids, new):
    """One full forward a token: no cache, no batch, no pads."""
    ids = list(ids)
    for _ in range(new):
        with torch.no_grad():
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[-new:]


# ── B01 ──────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize("order", [1, -1])
def test_b01_rows_of_unequal_length_are_as_alone(kind, order):
    peer = hf_tiny() if kind == "llama" else hf_gpt2()
    model = tl() if kind == "llama" else load_model(peer)
    want = [hf_greedy(peer, row, 16) for row in (A, B)]
    if kind == "llama":
        assert want[1] == ROW_B
    jobs = run(model, *(asked(row, 16, rules=GREEDY) for row in (A, B)[::order]))
    assert [texts(job)[0] for job in jobs] == want[::order]


def test_b01_the_log_probabilities_of_every_step_are_those_of_one_pass():
    peer, [_, job] = hf_tiny(), run(tl(), *(asked(row, 16, rules=GREEDY) for row in (A, B)))
    with torch.no_grad():
        rows = peer(torch.tensor([[*B, *ROW_B]])).logits[0].log_softmax(-1)
    want = [rows[len(B) - 1 + i, token].item() for i, token in enumerate(ROW_B)]
    assert [f.logprob for f in job.branches[0].facts] == pytest.approx(want, abs=1e-4)


# ── B05 ──────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("length", [6, 7, 8, 9, 16, 17])
def test_b05_a_window_is_the_same_fed_at_once_or_one_by_one(length):
    """Greedy text around the border of a window of 8, read in chunks of 1, 3 and at once."""
    model, peer = tl(0, "mistral", sliding_window=8), hf_tiny("mistral", 0, sliding_window=8)
    prompt = (A * 2)[:length]
    want = hf_greedy(peer, prompt, 12)
    request = asked(prompt, 12, rules=GREEDY)
    for chunk in (1, 3, 512):
        assert text(model, request, scheduler=Scheduler(chunk=chunk)) == want
    assert text(model, request, memory="none") == want


# ── B07 ──────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("context", [19, 24, 64, 256])
@pytest.mark.parametrize("new", [6, 7, 20])
def test_b07_the_length_budget_changes_no_token(made, context, new):
    model = tl()
    model.context = context
    lm = loaded(made, model)
    want = text(tl(), asked(A, 6, rules=GREEDY))
    if len(A) + new <= context:
        assert lm.generate(A, max_new_tokens=new).token_ids[:6] == want
    else:
        with pytest.raises(ParameterError, match=rf"{new}.*{context}"):
            lm.generate(A, max_new_tokens=new)
        room = context - len(A)
        assert lm.generate(A).token_ids[:6] == want and room >= 6
        assert len(lm.generate(A).token_ids) == room  # the default is shortened, with a note


# ── B14 ──────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("window", [None, 8])
def test_b14_beams_with_memory_are_beams_without(window):
    model = tl() if window is None else tl(0, "mistral", sliding_window=window)
    search = asked(A, 16, Beam(4, n=4))
    [plain], [kept] = run(model, search, memory="none"), run(model, search)
    assert texts(kept) == texts(plain) and len(texts(kept)) == 4
    for one, other in zip(kept.strategy.ranked(kept), plain.strategy.ranked(plain), strict=True):
        assert one[1] == pytest.approx(other[1], abs=1e-9)
    assert kept.usage.computed < plain.usage.computed / 4
