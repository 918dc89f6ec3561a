"""Merge rules for a sentencepiece BPE vocabulary, which has scores instead. Pure arithmetic."""
from __future__ import annotations

from collections.abc import Iterable


def merges_by_score(pieces: Iterable[tuple[str, float]]) -> list[tuple[str, str]]:
    """Every way to make one piece of two others, the best score of the made piece first.

    Sentencepiece's BPE always joins the neighbours whose joined piece scores highest (Kudo and
    Richardson 2018, section 3.2); a merge list in that order does the same. Between ways to make
    the same piece the one with the better pieces comes first, while sentencepiece takes the
    leftmost in the text: only texts where one piece overlaps itself ("aaa") could differ.
    """
    scores = dict(pieces)
    made = [
        (-score, -scores[piece[:cut]] - scores[piece[cut:]], piece[:cut], piece[cut:])
        for piece, score in scores.items()
        for cut in range(1, len(piece))
        if piece[:cut] in scores and piece[cut:] in scores
    ]
    made.sort()
    return [(left, right) for _, _, left, right in made]
