"""Reads the string form of strategies: `beam:5@20 >> sample:t=.8,top_p=.95`.

    program   plan { ">>" plan }
    plan      name [ ":" setting { "," setting } ] [ "@" end { "," end } ]
    setting   value, or parameter "=" value        what a value alone means depends on the name
    end       number of tokens, or tokens= step= text= regex= entropy> with a value
    value     number, true, false, none, a word, a schedule (`core/schedule.py`), 'text in quotes'

In quotes a backslash stands before a quote or a backslash, or in \\n and \\t; a list, an object or
a string of JSON is read as what it is, but not in an end. It knows the names of strategies and of
parameters' short forms, and no parameter's range.
"""
from __future__ import annotations

import json
import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, NoReturn

from unspool.core.errors import ParameterError
from unspool.core.plan import CONSTANTS, ENDS, WORD, Plan, Program, end
from unspool.core.schedule import read_number
from unspool.core.values import shown

SHORT = {"t": "temperature", "width": "num_beams", "k": "top_k", "p": "top_p",
         "entropy": "entropy_above", "words": "must_contain", "groups": "num_beam_groups"}
# Strategies by name, and what the first value without a name means.
SEARCHES = {
    "greedy": "", "sample": "temperature", "beam": "num_beams", "beam_sample": "num_beams",
    "diverse_beam": "num_beams", "sibling_beam": "num_beams", "stochastic_beam": "num_beams",
    "lexical_beam": "must_contain", "contrastive": "penalty_alpha", "best_of": "best_of",
    "self_consistency": "best_of", "mbr": "best_of", "tree": "search_budget",
    "gated": "gate_confidence", "cot": "best_of"}
# Cuts are strategies too: they sample.
CUTS = {"temperature": "temperature",
        **{name: name for name in (
            "top_k", "top_p", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff", "top_h",
            "top_n_sigma", "top_a", "tfs_z", "mirostat")},
        "xtc": "xtc_probability", "dynatemp": "dynatemp_range", "adaptive": "adaptive_target"}
FIRST = {**SEARCHES, **CUTS}
SETTING = re.compile(r"\s*([A-Za-z_]\w*)\s*([=>])\s*(.*?)\s*", re.DOTALL | re.ASCII)
QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)


def parse(text: str) -> Plan | Program:
    """The strategy or program that a string names. Raises ParameterError, which says where."""
    plans = [Reader(text, part, first).plan() for part, first in pieces(text, ">>")]
    return plans[0] if len(plans) == 1 else Program(tuple(plans))


def pieces(text: str, mark: str, first: int = 0) -> Iterator[tuple[str, int]]:
    """The parts between marks that stand outside quotes, with the place where each begins."""
    begin, quote, i = 0, "", 0
    while i < len(text):
        if text[i] == "\\" and quote:
            i += 1
        elif text[i] in "'\"" and quote in ("", text[i]):
            quote = "" if quote else text[i]
        elif not quote and text.startswith(mark, i):
            yield text[begin:i], first + begin
            begin = i + len(mark)
            i = begin - 1
        i += 1
    yield text[begin:], first + begin


class Reader:
    """One plan of the string `text`, which begins there at `first`."""

    def __init__(self, text: str, part: str, first: int) -> None:
        self.text, self.part, self.first = text, part, first

    def plan(self) -> Plan:
        head, *ends = pieces(self.part, "@", self.first)
        (start, _), *settings = pieces(head[0], ":", head[1])
        name = start.strip()
        if name not in FIRST:
            near = get_close_matches(name, FIRST, n=1)
            self.refuse(f"there is no strategy {shown(name)}; " + (
                f"did you mean {near[0]}?" if near else
                f"there are {', '.join(SEARCHES)}, and cuts as in top_p:0.9"), head[1])
        if len(ends) > 1:
            self.refuse("a stage has one @; join its ends by commas", ends[1][1] - 1)
        rest = (self.part[len(start) + 1:len(head[0])], head[1] + len(start) + 1)
        params = self.params(name, rest) if settings else {}
        if name in CUTS and FIRST[name] not in params:
            self.refuse(f"{name} needs a value, as in '{name}:0.9'", head[1])
        return Plan("sample" if name in CUTS else name, tuple(params.items()),
                    tuple(self.end(*item) for item in pieces(ends[0][0], ",", ends[0][1]))
                    if ends else ())

    def params(self, name: str, rest: tuple[str, int]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for item, place in pieces(rest[0], ",", rest[1]) if rest[0].strip() else ():
            key, mark, value = self.setting(item)
            key = key or (FIRST[name] if not out else "")
            if not key or not value or mark == ">" or SHORT.get(key, key) in out:
                self.refuse(f"{shown(item.strip())} is no setting of its own; write name=value, "
                            "each name once", place)
            out[SHORT.get(key, key)] = self.value(value, place)
        return out

    def setting(self, item: str) -> tuple[str, str, str]:
        """What stands before "=" or ">", which of them it is, and what stands behind."""
        found = SETTING.fullmatch(item)
        return (found[1], found[2], found[3]) if found else ("", "", item.strip())

    def end(self, item: str, place: int) -> tuple[str, Any]:
        kind, mark, value = self.setting(item)
        kind = SHORT.get(kind, kind) or "tokens"
        if kind not in ENDS or not value or (mark == ">" and kind != "entropy_above"):
            self.refuse(f"{shown(item.strip())} ends nothing; after @ comes a number of tokens, "
                        f"or {'=, '.join(ENDS)}= with a value", place)
        said = kind in ("text", "regex")
        found: Any = self.unquoted(value, place) if said else self.value(value, place)
        try:
            return kind, end(kind, found)
        except ParameterError as error:
            self.refuse(str(error).removeprefix("strategy: "), place)

    def value(self, text: str, place: int) -> Any:
        if text.lower() in CONSTANTS:
            return CONSTANTS[text.lower()]
        if text[0] in "'\"":
            return self.quoted(text, place)
        found = read_number(text)
        if found is None and WORD.fullmatch(text):
            return text
        if found is None:
            self.refuse(f"{shown(text)} is not a number, a schedule as in 1.2..0.5/40, or a word; "
                        "put a text in quotes", place)
        return found

    def quoted(self, text: str, place: int) -> Any:
        inner = self.unquoted(text, place)
        if inner[:1] in ("[", "{", '"'):
            try:
                return json.loads(inner)
            except (ValueError, RecursionError):
                pass  # a text that begins so
        return inner

    def unquoted(self, text: str, place: int) -> str:
        """A text without its quotes, if it has any."""
        if text[0] not in "'\"":
            return text
        found = QUOTED.fullmatch(text)
        if found is None:
            self.refuse(f"{shown(text)} is no text in quotes: one begins and ends with the same "
                        "quote, and has a backslash before each in between", place)
        return re.sub(r"\\([\\'\"nt])", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]),
                      text[1:-1])

    def refuse(self, why: str, place: int) -> NoReturn:
        while self.text[place:place + 1].isspace():
            place += 1
        raise ParameterError(f"strategy={shown_whole(self.text)}: {why} (at character {place + 1})",
                             "strategy")


def shown_whole(text: str) -> str:
    return repr(text) if len(text) <= 200 else shown(text)
