"""Whether what a request remembers fits into the machine's memory, asked before its first forward.

The texts of a request share what they begin with, the prompt at least; how soon they part nobody
knows, so each is counted as if it had parted from the others at its first token.
"""
from __future__ import annotations

import os
from pathlib import Path

from unspool.core.errors import ParameterError
from unspool.llm.facts import Facts

MEMINFO = Path("/proc/meminfo")
BLOCK = 16  # tokens: keys and values are kept in blocks of so many


def free_bytes() -> int:
    """What the system says it can give; 0 where it says nothing."""
    try:
        for line in MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0


def needed(facts: Facts, texts: int, prompt: int, room: int) -> int:
    """Bytes for so many texts behind one prompt, each of at most `room` tokens; 0: not known."""
    own = blocks(room) + 1  # the prompt's last block is copied by the first write
    if facts.reserve:
        own = blocks(max(facts.reserve - prompt, 0)) + 1
    return (blocks(prompt) + texts * own) * BLOCK * facts.token_bytes


def check_room(facts: Facts, asked: tuple[str, int], tokens: tuple[int, int], readers: int = 1
               ) -> None:
    """Raises ParameterError where they do not fit. `asked`: the parameter that asks for several
    texts, and how many; `tokens`: of the prompt, and at most behind it; `readers`: how many read
    the texts, each with a memory of its own."""
    (name, texts), (prompt, room) = asked, tokens
    need = readers * needed(facts, texts, prompt, room)
    if texts < 2 or not need:
        return
    free = free_bytes()
    if need > free > 0:
        raise ParameterError(f"{name}={texts} does not fit: {texts} texts of up to {prompt + room} "
                             f"tokens take {need:,} bytes and {free:,} are free; write less, or "
                             "fewer texts", name)


def blocks(tokens: int) -> int:
    return -(-tokens // BLOCK)
