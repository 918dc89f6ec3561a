"""What a fork takes: a text of the default model parts into branches, and each writes a token.

Bytes are counted by the pool of pages, which knows every page, and by tracemalloc, which knows all
memory that Python and numpy ask for. `python -m bench.fork --tokens 1000 --branches 5` asks for
other sizes.
"""
from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import pairwise
from statistics import median
from typing import Any

from bench.figure import Figure, at_most, exactly, seen
from unspool.core.prefix import prefix
from unspool.core.sockets import Reader, Span
from unspool.files import store
from unspool.kernels.layer.pages import PAGE
from unspool.memories import Dense
from unspool.memories.dense import Buffer
from unspool.models.load import load_model
from unspool.models.pages import pages_of

TOKENS, BRANCHES, RUNS = 1000, 5, 21


def small(tokens: int, branches: int) -> int:
    """Bytes that branches may take beside pages: of each the lease, and the table of its pages."""
    return branches * (4096 + 4 * tokens)


class Trunk:
    """A text that was read and is still held, so that every branch parts from it."""

    def __init__(self, tokens: int, branches: int) -> None:
        self.model: Any = load_model(store.find(store.DEFAULT), device="cpu", numerics="default")
        self.memory = Dense()
        self.reader = Reader(self.model.fingerprint, self.model.numerics)
        text = prefix(5 + i % 1000 for i in range(tokens))
        lease = self.memory.known(self.reader, text)
        self.model.score([Span(lease, text.tokens(), 0, 0)])
        self.memory.settle(lease, text)
        self.held = self.memory.known(self.reader, text.extend(4))
        self.texts = [text.extend(token) for token in range(5, 5 + branches)]

    def fork(self) -> list[Buffer]:
        return [self.memory.known(self.reader, text) for text in self.texts]

    def room(self, leases: list[Buffer]) -> None:
        """What a forward asks of a text before it writes the next token."""
        for lease in leases:
            pages_of(lease, self.model.pool).room(lease.length, 1)

    def end(self, leases: list[Buffer]) -> None:
        for lease in leases:
            self.memory.settle(lease, None)


def figures(tokens: int = TOKENS, branches: int = BRANCHES) -> Iterator[Figure]:
    trunk = Trunk(tokens, branches)
    pool, page = trunk.model.pool, trunk.model.layout.page
    yield seen("the text", pool.held, "bytes", f"{tokens} tokens, {-(-tokens // PAGE)} pages")
    leases, asked, held, slabs = counted(pool, trunk.fork)
    assert all(lease.length == tokens for lease in leases)
    yield exactly(f"{branches} branches: pages", held // page, 0)
    yield exactly(f"{branches} branches: bytes of slabs", slabs, 0)
    yield at_most(f"{branches} branches: bytes by tracemalloc", asked,
                  small(tokens, branches), "bytes")
    _, asked, held, slabs = counted(pool, lambda: trunk.room(leases))
    yield exactly("their first write: pages", held // page, branches)
    yield seen("their first write: bytes of slabs", slabs, "bytes", "a slab serves later writes")
    yield at_most("their first write: bytes by tracemalloc", asked,
                  slabs + small(tokens, branches), "bytes")
    spans = [Span(lease, [text.token], tokens, 1)
             for lease, text in zip(leases, trunk.texts, strict=True)]
    trunk.model.score(spans)
    trunk.end(leases)
    again = counted(pool, lambda: trunk.end(written(trunk)))
    yield exactly("once more: bytes of slabs", again[3], 0)
    for what, spent in zip(("fork", "first write", "end"), times(trunk), strict=True):
        yield seen(f"{branches} branches: {what}", spent, "ms", f"median of {RUNS}")
    trunk.memory.clear()
    yield exactly("forgotten: bytes held", pool.held, 0)
    trunk.model.close()


def counted(pool: Any, act: Callable[[], Any]) -> tuple[Any, int, int, int]:
    """What it returns; bytes more by tracemalloc, at most; of pages held; and of slabs."""
    held, slabs = pool.held, pool.allocated
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    out = act()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return out, most - before, pool.held - held, pool.allocated - slabs


def written(trunk: Trunk) -> list[Buffer]:
    leases = trunk.fork()
    trunk.room(leases)
    return leases


def times(trunk: Trunk) -> list[float]:
    """Milliseconds to fork, to make room for the first write, and to end."""
    runs = []
    for _ in range(RUNS):
        at = [time.perf_counter()]
        leases = trunk.fork()
        at.append(time.perf_counter())
        trunk.room(leases)
        at.append(time.perf_counter())
        trunk.end(leases)
        at.append(time.perf_counter())
        runs.append([1000 * (b - a) for a, b in pairwise(at)])
    return [median(run[i] for run in runs) for i in range(3)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.fork", description=__doc__)
    parser.add_argument("--tokens", type=int, default=TOKENS, help="of the text that parts")
    parser.add_argument("--branches", type=int, default=BRANCHES, help="into how many")
    asked = parser.parse_args()
    for figure in figures(asked.tokens, asked.branches):
        print(figure.line())


if __name__ == "__main__":
    main()
