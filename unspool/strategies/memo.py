"""What was judged of a job's texts stays known for as long as they stay as they are.

The answers of a request are ranked several times, and what judges texts may be slow, or say
something else when asked again. Knows nothing of what is judged.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from unspool.core.branch import Branch
from unspool.core.job import Job

T = TypeVar("T")


def together(job: Job, name: str, branches: Sequence[Branch],
             judge: Callable[[Sequence[Branch]], Sequence[T]]) -> Sequence[T]:
    """`judge(branches)`, asked again only when one of the texts has changed."""
    texts = [(b.settled, b.ended) for b in branches]
    if name not in job.kept or job.kept[name][0] != texts:
        job.kept[name] = texts, judge(branches)
    found: Sequence[T] = job.kept[name][1]
    return found


def each(job: Job, name: str, branches: Sequence[Branch],
         judge: Callable[[Sequence[Branch]], Sequence[T]]) -> list[T]:
    """The same where a judgment is of one text alone: only new texts are judged, all in one call.
    """
    old, texts = job.kept.get(name, {}), [(b.settled, b.ended) for b in branches]
    fresh = {text: b for text, b in zip(texts, branches, strict=True) if text not in old}
    if fresh:
        old = {**old, **dict(zip(fresh, judge(list(fresh.values())), strict=True))}
    job.kept[name] = {text: old[text] for text in texts}
    return [old[text] for text in texts]
