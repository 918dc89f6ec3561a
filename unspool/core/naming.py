"""Names of parameters: every spelling to its canonical one, and the nearest for a mistyped one.

Knows the table only as it is handed in.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NoReturn

from unspool.core.errors import ParameterError
from unspool.core.values import Parameter, shown

# Other programs' names that have no counterpart here: the value that asks for nothing, and where
# to look instead.
FOREIGN: Mapping[str, tuple[object, str]] = {
    "output_scores": (False, "say logprobs=N for scores"),
    "output_logits": (False, "say logprobs=N for raw scores"),
    "return_dict_in_generate": (False, "results always carry their scores"),
    "use_beam_search": (False, "say num_beams=N"),
    "compile_config": (None, "leave it out"),
    "disable_compile": (False, "leave it out"),
    "low_memory": (False, "leave it out"),
}
HTTP = ("request_id", "session_id", "priority", "extra_args", "vllm_xargs", "metadata", "user",
        "safety_identifier", "service_tier", "store", "verbosity", "stream_options",
        "prompt_cache_key", "prompt_cache_options")


def spellings(table: Iterable[Parameter]) -> dict[str, tuple[Parameter, float]]:
    """Every spelling, with its parameter and the factor that turns its unit into ours.

    An alias written `name*0.001` counts in another unit (milliseconds for seconds).
    """
    found: dict[str, tuple[Parameter, float]] = {}
    for parameter in table:
        for spelling in (parameter.name, *parameter.aliases):
            name, _, factor = spelling.partition("*")
            assert name not in found, f"{name} is spelled twice"
            found[name] = parameter, float(factor or 1)
    return found


def foreign(name: str, value: object) -> bool:
    """True for a foreign name with nothing asked for. ParameterError if something is asked for."""
    if name not in FOREIGN and name not in HTTP:
        return False
    calm, fix = FOREIGN.get(name, (None, "it is a field of an HTTP request"))
    if value is not None and value is not calm:
        raise ParameterError(f"{name}={shown(value)}: not a parameter here; {fix}", name)
    return True


def unknown(name: object, known: Mapping[str, tuple[Parameter, float]]) -> NoReturn:
    """Refuses an unknown name with the nearest known one."""
    from difflib import get_close_matches

    near = get_close_matches(str(name)[:64].lower().replace("-", "_"), known, n=1, cutoff=0.6)
    canonical = known[near[0]][0].name if near else ""
    also = "" if not near or near[0] == canonical else f" (here {canonical})"
    fix = f"did you mean {near[0]}{also}?" if near else "see the list of parameters"
    raise ParameterError(f"{shown(name)}: not a known parameter; {fix}", str(name)[:64])
