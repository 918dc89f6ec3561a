"""Strategies by name and by value: `beam(5)`, `sample(temperature=0.8)`, "beam:5", "top_p:0.9".

Each is a set of parameters, so that a strategy, a flag and an HTTP field mean the same.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from unspool.core.errors import ParameterError

SHORT = {"t": "temperature", "width": "num_beams"}
NAMES = ("greedy", "sample", "beam")
# What the first value without a name means. Cuts are strategies too: they sample.
FIRST = {"beam": "num_beams", "sample": "temperature", "temperature": "temperature",
         **{name: name for name in (
             "top_k", "top_p", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff", "top_h",
             "top_n_sigma", "top_a", "tfs_z", "mirostat")},
         "xtc": "xtc_probability", "dynatemp": "dynatemp_range", "adaptive": "adaptive_target",
         "greedy": ""}


@dataclass(frozen=True, slots=True)
class Plan:
    """A strategy as the parameters that ask for it."""

    name: str
    params: tuple[tuple[str, Any], ...] = ()

    def over(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """These parameters beside those of the request. Raises ParameterError when two differ."""
        out = {k: v for k, v in given.items() if k != "strategy"}
        for name, value in (("strategy", self.name), *self.params):
            if out.get(name) not in (None, value):
                raise ParameterError(f"{name}={out[name]!r} with strategy={self}: the strategy "
                                     f"says {value!r}; give one of them", name)
            out[name] = value
        return out

    def __rshift__(self, then: object) -> Plan:
        raise ParameterError(f"{self} >> {then}: programs of strategies are not in this version; "
                             "name one strategy", "strategy")

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{k}={v}' for k, v in self.params)})"


def beam(width: int = 5, *, length_penalty: float | None = None,
         early_stopping: bool | Literal["never"] | None = None) -> Plan:
    """Beam search of `width` branches; see `strategies/beam.py` for the definitions."""
    return Plan("beam", given(num_beams=width, length_penalty=length_penalty,
                              early_stopping=early_stopping))


def sample(**params: Any) -> Plan:
    """Sampling, with any of its parameters: temperature, top_k, top_p, min_p, ..."""
    return Plan("sample", given(**params))


def greedy() -> Plan:
    """The likeliest token at every step."""
    return Plan("greedy")


def given(**params: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((k, v) for k, v in params.items() if v is not None)


def parse(text: str) -> Plan:
    """The strategy that a string names: `name`, `name:value` or `name:parameter=value,...`."""
    if ">>" in text or "@" in text:
        raise ParameterError(f"strategy={text!r}: programs (>>, @) are not in this version; name "
                             "one strategy", "strategy")
    name, _, rest = (part.strip() for part in text.partition(":"))
    if name not in FIRST:
        raise ParameterError(f"strategy={text!r}: there is no strategy {name!r}; there are "
                             f"{', '.join(FIRST)}", "strategy")
    params: dict[str, Any] = {}
    for item in rest.split(",") if rest else ():
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals:
            key, value = FIRST[name], key
        key = SHORT.get(key, key)
        if not key or not value or key in params:
            raise ParameterError(f"strategy={text!r}: {item.strip()!r} is no setting of its own; "
                                 "write name=value, each name once", "strategy")
        params[key] = number(value, text)
    if name not in NAMES and FIRST[name] not in params:
        raise ParameterError(f"strategy={text!r}: {name} needs a value, as in '{name}:0.9'",
                             "strategy")
    return Plan(name if name in NAMES else "sample", tuple(params.items()))


def number(value: str, text: str) -> Any:
    words = {"true": True, "false": False, "never": "never"}
    if value.lower() in words:
        return words[value.lower()]
    try:
        return int(value) if value.lstrip("+-").isdigit() else float(value)
    except ValueError:
        raise ParameterError(f"strategy={text!r}: {value!r} is not a number", "strategy") from None
