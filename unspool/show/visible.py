"""Text as a person can see it: spaces marked, control characters named.

Knows no tokens and no colours. A model may write any character, escape sequences that drive a
terminal among them, so what is shown passes here first; what is piped to a program does not.
"""

import unicodedata

MARKS = {" ": "·", "\n": "↵", "\t": "⇥"}
UNSEEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}  # control, format, surrogate, private, separators
JOINERS = {"\u200c", "\u200d"}  # parts of words in Persian and Hindi, and of emoji


def visible(text: str) -> str:
    """`text` on one line with every character to be seen: " a\\n" is "·a↵"."""
    return "".join(MARKS.get(char) or _named(char) for char in text)


def quoted(text: str) -> str:
    """`visible` text between marks, so that its ends can be seen too."""
    return f'"{visible(text)}"'


def harmless(text: str) -> str:
    """`text` as it is, line breaks included, save for characters that could drive a terminal."""
    return "".join(char if char in "\n\t" else _named(char) for char in text)


def _named(char: str) -> str:
    if char in JOINERS or unicodedata.category(char) not in UNSEEN:
        return char
    return f"⟨U+{ord(char):04X}⟩"
