"""The parameter `watermark`: from its fields to a rule, and from the rule to its detector.

    {"kind": "kgw", "greenlist_ratio": 0.25, "bias": 2.0, "hashing_key": 15485863,
     "seeding_scheme": "lefthash", "context_width": 1}
    {"kind": "gumbel", "hashing_key": 15485863, "context_width": 4}
    {"kind": "synthid", "keys": [654, 400, 836], "ngram_len": 5, "context_history_size": 1024,
     "sampling_table_seed": 0, "sampling_table_size": 65536, "skip_first_ngram_calls": False}

All but `keys` may be left out. transformers' WatermarkingConfig and SynthIDTextWatermarkingConfig
are taken as they are, and so are their fields without a kind.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from unspool.core.errors import ParameterError
from unspool.core.values import CHECKS, Parameter, Range, shown, whole_number
from unspool.rules.rule import RuleValue
from unspool.rules.watermarks import gumbel, kgw, synthid
from unspool.rules.watermarks.detection import Detection

NAME = "watermark"
LONG = "0..9223372036854775807"  # an int64
KEY = 15485863  # transformers' own; whoever marks texts in earnest chooses another
MOST_KEYS = 256


def field(kind: str, range_: str, default: Any) -> Parameter:
    return Parameter(NAME, kind, Range.of(range_, kind != "float"), default, (), (), "", 3, "")


FIELDS: Mapping[str, Mapping[str, Parameter]] = {
    "kgw": {
        "greenlist_ratio": field("float", "0<..1", 0.25),
        "bias": field("float", "0..1000", 2.0),
        "hashing_key": field("int", LONG, KEY),
        "seeding_scheme": field("bool | str", "lefthash|selfhash", "lefthash"),
        "context_width": field("int", "1..1024", 1),
    },
    "gumbel": {
        "hashing_key": field("int", LONG, KEY),
        "context_width": field("int", "1..1024", 4),
    },
    "synthid": {
        "ngram_len": field("int", "2..1024", 5),
        "keys": field("Any", "", None),
        "context_history_size": field("int", "0..1048576", 1024),
        "sampling_table_seed": field("int", LONG, 0),
        "sampling_table_size": field("int", "1..16777216", 2**16),
        "skip_first_ngram_calls": field("bool", "", False),
        "debug_mode": field("bool", "", False),
    },
}
KINDS = " | ".join(FIELDS)


def watermark_of(config: object, vocab: int) -> RuleValue:
    """The rule that a value of the parameter `watermark` asks for. `vocab`: ids the model writes.

    Raises ParameterError, which names the field: unknown, missing, of a wrong type or out of range.
    """
    fields = fields_of(config)
    kind = kind_of(fields)
    values = checked(kind, fields)
    return MAKERS[kind](values, vocab)


def refuse(label: str, value: object, rule: str, fix: str) -> NoReturn:
    raise ParameterError(f"{label}={shown(value)}: must be {rule}; {fix}", NAME)


def fields_of(config: object) -> dict[str, Any]:
    to_dict = getattr(config, "to_dict", None)
    found = to_dict() if callable(to_dict) and not isinstance(config, type) else config
    if not isinstance(found, Mapping) or not all(isinstance(name, str) for name in found):
        refuse(NAME, config, f"a dict with a kind: {KINDS}",
               "e.g. {'kind': 'gumbel', 'hashing_key': 42}")
    return dict(found)


def kind_of(fields: dict[str, Any]) -> str:
    """Takes the kind out of the fields; those of transformers tell it by their names."""
    if "kind" not in fields:
        fields["kind"] = "synthid" if fields.keys() & {"keys", "ngram_len"} else "kgw"
        if not fields.keys() & FIELDS[fields["kind"]].keys():
            refuse(f"{NAME}.kind", None, f"one of {KINDS}", "give it")
    kind = fields.pop("kind")
    if not isinstance(kind, str) or kind not in FIELDS:
        refuse(f"{NAME}.kind", kind, f"one of {KINDS}", "give one of them")
    return kind


def checked(kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    known = FIELDS[kind]
    for name, value in fields.items():
        if name not in known:
            refuse(f"{NAME}.{name}", value, f"left out: {kind} has {', '.join(known)}",
                   "take it out")
    out = {name: row.default for name, row in known.items()}
    for name, value in fields.items():
        out[name] = CHECKS[known[name].type](known[name], f"{NAME}.{name}", value)
    return out


def make_kgw(values: dict[str, Any], vocab: int) -> RuleValue:
    greens = kgw.Greens(vocab, values["greenlist_ratio"], values["hashing_key"],
                        values["seeding_scheme"] == "selfhash", values["context_width"])
    if not 0 < greens.count < vocab:
        refuse(f"{NAME}.greenlist_ratio", greens.ratio, "a share that makes some tokens green and "
               f"others not, of {vocab}", "0.25 is usual")
    return kgw.kgw(values["bias"], data=greens)


def make_gumbel(values: dict[str, Any], vocab: int) -> RuleValue:
    return gumbel.gumbel_watermark(data=gumbel.Source(
        values["hashing_key"], values["context_width"]))


def make_synthid(values: dict[str, Any], vocab: int) -> RuleValue:
    label, keys = f"{NAME}.keys", values["keys"]
    if not isinstance(keys, list | tuple) or not 0 < len(keys) <= MOST_KEYS:
        refuse(label, keys, f"a list of 1 to {MOST_KEYS} whole numbers, one for each depth",
               "give it, e.g. 30 numbers of your own")
    if values["debug_mode"]:
        refuse(f"{NAME}.debug_mode", True, "False: it would throw the model's scores away",
               "leave it out")
    row = field("int", LONG, None)
    return synthid.synthid(data=synthid.Tournament(
        tuple(whole_number(row, f"{label}[{i}]", key) for i, key in enumerate(keys)),
        values["ngram_len"], values["sampling_table_seed"], values["sampling_table_size"],
        values["context_history_size"], values["skip_first_ngram_calls"]))


MAKERS: Mapping[str, Callable[[dict[str, Any], int], RuleValue]] = {
    "kgw": make_kgw, "gumbel": make_gumbel, "synthid": make_synthid}

DETECTORS: Mapping[str, Callable[..., Detection]] = {
    "kgw": kgw.detect, "gumbel_watermark": gumbel.detect, "synthid": synthid.detect}


def detect(ids: Sequence[int], mark: RuleValue, **options: Any) -> Detection:
    """Look for a mark in token ids; `mark` is what `watermark_of` gave when it was written.

    `threshold`: standard deviations. The other options are those of the mark's own detector:
    `context` and `repeats` of kgw, `context` and `choices` of gumbel, `weighted` of synthid.
    """
    return DETECTORS[mark.name](ids, mark.data, **options)
