"""A process that looks for one regular expression and dies when that takes too long.

Started by `match.py` as a script: reads one JSON object with the pattern and the texts, answers
with the place of each text's last match. It imports nothing of this package.
"""
from __future__ import annotations

import json
import re
import signal
import sys


def main() -> None:
    question = json.load(sys.stdin)
    if hasattr(signal, "setitimer"):
        # No handler is set: the system ends the process, whatever it is in the midst of.
        signal.setitimer(signal.ITIMER_PROF, question["seconds"])
    pattern, group = re.compile(question["regex"]), question["group"]
    places: list[tuple[int, int] | None] = []
    for text in question["texts"]:
        found = None
        for match in pattern.finditer(text):
            if match[group]:
                found = match.span(group)
        places.append(found)
    json.dump(places, sys.stdout)


if __name__ == "__main__":
    main()
