"""The inputs that the bug cases share: models of exact tables, letters, and ways to run them."""
from __future__ import annotations

import tokenizers
import torch
from engine_zoo import run
from models_zoo import hf_tiny, native, rand_ids
from tokenizers import AddedToken, decoders, pre_tokenizers
from tokenizers import models as bpe

from unspool.core.request import Request
from unspool.llm.facts import Facts
from unspool.llm.llm import LLM
from unspool.memories import MEMORIES
from unspool.stops.length import MaxNew
from unspool.stops.tokens import EndTokens
from unspool.strategies import Sample
from unspool.text.pieces import CHAR_OF_BYTE
from unspool.text.tokenizer import Facts as WordFacts
from unspool.text.tokenizer import Tokenizer

A, B = rand_ids(1, 13, 4)


def random_table(seed, size, std):
    torch.manual_seed(seed)
    return torch.randn(size, size) * std


def tl(seed=0, family="llama", **features):
    """TL(seed), TM(window) in float64, by our own family."""
    return native(hf_tiny(family, seed, **features), "float64")


# ── the engine alone ─────────────────────────────────────────────────────────────────────────────
def asked(prompt, new, strategy=None, rules=(), ends=(), **fields):
    stops = (EndTokens(frozenset(ends)), MaxNew(new))
    return Request(tuple(prompt), strategy or Sample(), tuple(rules), stops, **fields)


def texts(job):
    """The tokens of every answer, best first."""
    return [branch.tokens for branch, _ in job.strategy.ranked(job)]


def text(model, request, **how):
    [job] = run(model, request, **how)
    [tokens] = texts(job)
    assert tokens, "nothing was written"
    return tokens


class Script:
    """A drafter that guesses what it was given, `size` tokens at a time."""

    def __init__(self, known, size):
        self.known, self.size = list(known), size

    def guess(self, branch):
        return self.known[branch.written:branch.written + self.size]


class PromptLookup:
    """Guesses what followed the last `n` tokens where they stood before, the last such place."""

    def __init__(self, size, n=2):
        self.size, self.n = size, n

    def guess(self, branch):
        tokens = branch.settled.tokens()
        for n in range(min(self.n, len(tokens) - 1), 0, -1):
            for at in range(len(tokens) - n - 1, -1, -1):
                if tokens[at:at + n] == tokens[-n:]:
                    return tokens[at + n:at + n + self.size]
        return []


# ── the library ──────────────────────────────────────────────────────────────────────────────────
def words(names, specials=(), decoder=None, cut=None, **facts) -> Tokenizer:
    """A tokenizer whose token i is `names[i]`, then the special ones."""
    vocabulary = {name: i for i, name in enumerate(names)}
    backend = tokenizers.Tokenizer(bpe.BPE(vocab=vocabulary, merges=[]))
    backend.decoder = decoder or decoders.Fuse()
    if cut is not None:
        backend.pre_tokenizer = cut
    backend.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in specials])
    return Tokenizer(backend, WordFacts(**facts))


def letters(size=12, extra=(), **facts) -> Tokenizer:
    """LET: one-letter tokens a, b, c, ... from id 0 on."""
    return words([*(chr(97 + i) for i in range(size)), *extra], **facts)


def byte_words() -> Tokenizer:
    """One token per byte."""
    cut = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return words([CHAR_OF_BYTE[i] for i in range(256)], (), decoders.ByteLevel(), cut)


def loaded(made, model, tokenizer=None, ends=(), memory="dense", scheduler=None) -> LLM:
    """The model as `load` gives it; closed at the end of the test."""
    facts = Facts("tiny", model.numerics, model.vocab, model.context, tokenizer, frozenset(ends))
    made.append(LLM(model, facts, MEMORIES[memory](model.context), scheduler))
    return made[-1]


def streamed(lm, prompt, **params):
    """(pieces of text of the first choice, the output)."""
    pieces, output = [], None
    for event in lm.stream(prompt, **params):
        if event.type == "commit" and event.choice == 0 and event.text:
            pieces.append(event.text)
        output = event.output or output
    assert "".join(pieces) == output.text
    return pieces, output
