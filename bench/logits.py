"""Largest difference between our logits and transformers', on the default and on tiny models."""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.figure import Figure, at_most
from bench.pair import ids, our_rows, ours, peer_rows
from bench.texts import TEXTS
from bench.trees import load_test

DEFAULT, TINY = 1e-3, 1e-4
SOME = (0, 1, 7, 9, 17, 18, 25, 28)
TOKENS = 70


def figures() -> Iterator[Figure]:
    texts = [ids(TEXTS[i]) for i in SOME]
    mine = our_rows(texts, [len(text) for text in texts])
    for text, rows in zip(texts, mine, strict=True):
        worst = float(np.abs(rows - peer_rows(text)).max())
        begin = ours().facts.text(text[0])
        yield at_most(f"default model, {len(text)} tokens", worst, DEFAULT, note=f"{begin!r} ...")
    zoo, features = load_test("models_zoo"), load_test("models/test_decoder").FEATURES
    [noise] = zoo.rand_ids(3, TOKENS)
    for name, (family, settings) in features.items():
        theirs = zoo.hf_tiny(family, **settings)
        gap = zoo.logits(zoo.native(theirs), noise) - zoo.hf_logits(theirs, noise)
        yield at_most(f"tiny: {name}", float(gap.abs().max()), TINY)
