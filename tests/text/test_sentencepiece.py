"""Merges from scores: the best-scored piece is always made first."""
from __future__ import annotations

import random
from itertools import pairwise

from tokenizers import Tokenizer, models

from unspool.text.sentencepiece import merges_by_score


def by_definition(text: str, scores: dict[str, float]) -> list[str]:
    """Sentencepiece's BPE, word for word: join the neighbours whose join scores highest."""
    parts = list(text)
    while True:
        joins = [(-scores[a + b], i) for i, (a, b) in enumerate(pairwise(parts))
                 if a + b in scores]
        if not joins:
            return parts
        at = min(joins)[1]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]


def test_a_vocabulary_by_hand() -> None:
    scores = {"a": -9.0, "b": -9.0, "c": -9.0, "ab": -2.0, "bc": -1.0, "abc": -3.0}
    made = [("b", "c"), ("a", "b"), ("ab", "c"), ("a", "bc")]
    assert sorted(merges_by_score(scores.items())) == sorted(made)
    assert merges_by_score(scores.items())[:2] == made[:2]


def test_random_vocabularies_give_what_the_definition_gives() -> None:
    draw = random.Random(7)
    compared = 0
    for _ in range(60):
        pieces = {"".join(draw.choices("abcd", k=draw.randint(2, 4))) for _ in range(25)}
        # No piece may overlap itself: only there the leftmost is not told by a merge list.
        pieces = {p for p in pieces if len(set(p)) == len(p)}
        order = ["a", "b", "c", "d", *draw.sample(sorted(pieces), len(pieces))]
        scores = {piece: -float(rank) for rank, piece in enumerate(order)}
        vocab = {piece: i for i, piece in enumerate(scores)}
        backend = Tokenizer(models.BPE(vocab=vocab, merges=merges_by_score(scores.items())))
        for _ in range(40):
            text = "".join(draw.choices("abcd", k=12))
            assert backend.encode(text).tokens == by_definition(text, scores)
            compared += 1
    assert compared == 2400
