"""Keeps control-token text that a user typed plain. Knows the special tokens' texts, not the ids.

A special token is matched on the raw text, before the normaliser runs. So the first character of
every occurrence is swapped for a pair of code points that no text needs, and a normaliser step in
front of all others swaps it back: the occurrence is not matched, and the words are then cut as if
nothing had been there. A pair of its own stands for the lead code point, so every text survives.
"""
from __future__ import annotations

import re
from collections.abc import Iterable

from tokenizers import normalizers

LEAD = "\ufdd0"  # a noncharacter: never assigned (Unicode, section 23.7)
_FIRST = 0xF0000  # the second half of a pair: private use, plane 15


class Shield:
    """Hides the texts of `tokens` in what a user wrote, and tells a normaliser how to undo it."""

    def __init__(self, tokens: Iterable[str]) -> None:
        texts = sorted({token for token in tokens if token}, key=lambda text: (-len(text), text))
        heads = [LEAD, *sorted({text[0] for text in texts} - {LEAD})]
        self._pairs = {head: LEAD + chr(_FIRST + index) for index, head in enumerate(heads)}
        self.mark = LEAD + chr(_FIRST + len(heads))  # in no text that `hide` gives
        self._prefixes = {text[:end] for text in texts for end in range(1, len(text))}
        self._longest = max(map(len, texts), default=0)
        rests = {head: [re.escape(t[1:]) for t in texts if t[0] == head] for head in heads}
        rests[LEAD] = [""]
        self._pattern = re.compile(
            "|".join(f"{re.escape(head)}(?={'|'.join(rest)})" for head, rest in rests.items())
        )

    def hide(self, text: str) -> str:
        """`text` in which no special token can be matched, nor one that goes on behind it."""
        tail = self._tail(text)
        hidden = self._pattern.sub(lambda match: self._pairs[match[0]], text[:tail])
        # Cut at `tail`, a token across it is not seen above, but the tail itself begins in one.
        return hidden + "".join(self._pairs.get(char, char) for char in text[tail:])

    def show(self, text: str) -> str:
        """The text as it was before `hide`."""
        for head, pair in reversed(self._pairs.items()):
            text = text.replace(pair, head)
        return text

    def normalizer(self) -> normalizers.Normalizer:
        """The step that undoes `hide`; it goes before all others."""
        steps = [normalizers.Replace(pair, head) for head, pair in self._pairs.items()]
        return normalizers.Sequence([*steps[1:], steps[0]])

    def _tail(self, text: str) -> int:
        """Where a special token may begin that ends in what follows `text` (spaces may be cut)."""
        end = len(text.rstrip())
        starts = range(max(0, end - self._longest), end)
        return next((start for start in starts if text[start:end] in self._prefixes), len(text))
