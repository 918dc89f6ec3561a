"""Looks for a user's regular expression within a limit of time. Knows no answers and no tokens.

A pattern like `(a+)+$` may try more ways than there are atoms, and a thread that does cannot be
stopped. So patterns are matched in a process of their own (`match_worker.py`), one for a batch of
texts, which the system ends when its time is up. Where a system has no such clock, and on a machine
too busy to do the work, the time on the wall counts.
"""
from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import NoReturn

from unspool.core.errors import ParameterError
from unspool.core.values import shown

Place = tuple[int, int]  # the first character, and the one behind the last
PATTERN_CHARS = 4096
MATCH_SECONDS = 1.0  # of the process's own work, for all texts of a batch
_WAIT_SECONDS = 20.0
_WORKER = Path(__file__).with_name("match_worker.py")


def check(regex: str, group: int | str) -> None:
    """Raises ParameterError for what is no pattern, or has no such group."""
    if not isinstance(regex, str) or not 0 < len(regex) <= PATTERN_CHARS:
        refuse(regex, f"must be a string of 1 to {PATTERN_CHARS} characters; give one")
    try:
        made = re.compile(regex)
    except (re.error, RecursionError, OverflowError) as error:
        refuse(regex, f"is no regular expression ({error}); correct it")
    groups = {*range(made.groups + 1), *made.groupindex}
    if isinstance(group, bool) or not isinstance(group, int | str) or group not in groups:
        refuse(regex, f"has no group {shown(group)}; name one of {sorted(groups, key=str)}")


@lru_cache(maxsize=16)  # a strategy asks for the answers, and then where they stand
def last_matches(regex: str, group: int | str, texts: tuple[str, ...]) -> tuple[Place | None, ...]:
    """Where in each text the last match stands whose `group` is not empty.

    Raises ParameterError if that takes longer than a second of work.
    """
    question = json.dumps({"regex": regex, "group": group, "texts": texts,
                           "seconds": MATCH_SECONDS})
    try:
        done = subprocess.run([sys.executable, "-I", "-S", "-X", "utf8", str(_WORKER)],
                              input=question.encode(), stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=_WAIT_SECONDS, check=False,
                              process_group=0)  # a Ctrl-C in the terminal is for us, not for it
    except subprocess.TimeoutExpired:
        refuse(regex, slow(texts, _WAIT_SECONDS))
    except OSError as error:
        refuse(regex, f"cannot start the process that looks for it ({error}); extract 'number'")
    if done.returncode < 0 and -done.returncode == getattr(signal, "SIGPROF", 0):
        refuse(regex, slow(texts, MATCH_SECONDS))
    if done.returncode:
        refuse(regex, f"ended the process that looks for it (exit code {done.returncode}); "
                      "write a simpler one")
    return tuple(place and (place[0], place[1]) for place in json.loads(done.stdout))


def slow(texts: tuple[str, ...], seconds: float) -> str:
    size = max(map(len, texts), default=0)
    return (f"takes more than {seconds:g} s to look for in {len(texts)} texts of at most {size:,} "
            "characters; write it so that it can match in fewer ways")


def refuse(regex: object, why: str) -> NoReturn:
    raise ParameterError(f"answer={shown(regex)}: {why}", "answer")
