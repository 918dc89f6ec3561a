"""Plants faults in the engine and its kernels, one at a time, and shows which laws catch each.

`python tests/laws/faults.py` prints the table. A fault counts as caught only by a law that says
no (AssertionError), never by an exception; one that no law catches is a hole in the laws.
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from unittest.mock import patch

import torch

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
import compiled_faults  # noqa: E402
import laws  # noqa: E402
import search_faults  # noqa: E402
import subjects  # noqa: E402

from unspool.core.edits import Extend  # noqa: E402
from unspool.core.job import Job  # noqa: E402
from unspool.engine import read  # noqa: E402
from unspool.kernels import reference  # noqa: E402
from unspool.memories import dense  # noqa: E402
from unspool.models import batch  # noqa: E402
from unspool.models.decoder import Decoder  # noqa: E402
from unspool.rules import KINDS  # noqa: E402
from unspool.strategies import Sample  # noqa: E402


def noise_by_call_count():
    calls, place_of = count(), read.place_of

    def careless(o, depth):
        seed, choice, _, draw = place_of(o, depth)
        return seed, choice, next(calls), draw

    return patch.object(read, "place_of", careless)


def history_without_the_draft():
    return patch.object(read.State, "after", lambda self, rules, drafted: self)


def no_cut_at_a_stop():
    apply = Job.apply

    def careless(self, edits):
        for edit in list(edits):
            if isinstance(edit, Extend):
                edit.branch.ended = None
            apply(self, [edit])

    return patch.object(Job, "apply", careless)


def memory_one_token_too_long():
    shared = dense.shared
    return patch.object(dense, "shared", lambda one, other:
                        min(shared(one, other) + 1, one.length, other.length))


def every_draft_accepted():
    def decide(self, job, slots):
        for branch in job.live:
            for slot in slots[branch]:
                yield Extend(branch, slot.drafted or slot.pick)

    return patch.object(Sample, "decide", decide)


@contextmanager
def pads_attended() -> Iterator[None]:
    """Every row is filled up on its left to the longest one, with keys that can be seen."""
    attend, score, longest = reference.attend, Decoder.score, [0]

    def padded(q, k, v, start, **more):
        pads = max(longest[0] - k.shape[0], 0)
        blank = torch.zeros(pads, *k.shape[1:], dtype=k.dtype)
        return attend(q, torch.cat([blank, k]), torch.cat([blank, v]), start + pads, **more)

    def scored(self, spans):
        longest[0] = max(span.start + len(span.tokens) for span in spans)
        return score(self, spans)

    with patch.object(reference, "attend", padded), patch.object(Decoder, "score", scored):
        yield


def positions_shared_by_rows():
    def shared(spans):
        end = max(span.start + len(span.tokens) for span in spans)
        return [end - len(span.tokens) + i for span in spans for i in range(len(span.tokens))]

    return patch.object(batch, "positions", shared)


@contextmanager
def rule_state_by_call() -> Iterator[None]:
    """One history for all branches, which grows at every call."""
    from dataclasses import replace

    seen: list[int] = []

    def after(rule, state, token, fact):
        seen.append(token)
        return tuple(seen[-4:])

    with patch.dict(KINDS, fresh=replace(KINDS["fresh"], after=after)):
        yield


ENGINE = (noise_by_call_count, history_without_the_draft, no_cut_at_a_stop,
          memory_one_token_too_long, every_draft_accepted, pads_attended,
          positions_shared_by_rows, rule_state_by_call)
# Each with the subject whose laws should catch it.
FAULTS = {**dict.fromkeys((*ENGINE, *search_faults.FAULTS), subjects.reference),
          **compiled_faults.FAULTS}
# What laws to try first: the others would find it too, later, or have nothing to do with it.
FIRST = {rule_state_by_call: "[sample, fresh]", noise_by_call_count: "same_seed_same_text[sample]",
         positions_shared_by_rows: "chunked_is_whole[guided]",
         compiled_faults.segments_added_backwards_when_shared_out: "long_text_is_one",
         compiled_faults.changed_rows_in_one_place: "together_is_alone[beam, counting]",
         **search_faults.FAULTS}


def label(law: Callable[..., None], names: tuple[str, ...]) -> str:
    return f"{law.__name__}[{names[0]}]" if names else law.__name__


def verdict(law: Callable[..., None], subject: subjects.Subject, *names: str) -> str:
    """ok, caught, or the exception that hid the fault."""
    try:
        law(subject, *names)
    except AssertionError:
        return "caught"
    except Exception as error:
        return f"exception {type(error).__name__}"
    return "ok"


def catchers(fault: Callable[[], object], enough: int = 10**6) -> tuple[list[str], list[str]]:
    """Laws that catch the fault, and those that met an exception instead."""
    caught: list[str] = []
    broken: list[str] = []
    with fault():  # type: ignore[attr-defined]
        subject = FAULTS[fault]()
        for law, names in sorted(laws.matrix(subject.exact),
                                 key=lambda entry: FIRST.get(fault, "") not in label(*entry)):
            if len(caught) >= enough:
                break
            said = verdict(law, subject, *names)
            if said == "caught":
                caught.append(label(law, names))
            elif said != "ok":
                broken.append(f"{label(law, names)}: {said}")
        subject.close_all()
    return caught, broken


def main() -> int:
    holes = 0
    for fault in FAULTS:
        caught, broken = catchers(fault)
        holes += not caught or bool(broken)
        laws_named = sorted({c.partition("[")[0] for c in caught})
        print(f"{fault.__name__:40s} caught {len(caught):2d} times, by {', '.join(laws_named)}")
        for line in broken:
            print(f"{'':40s} {line}")
    return int(holes > 0)


if __name__ == "__main__":
    sys.exit(main())
