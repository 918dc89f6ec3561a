"""Parameters that contradict each other. Each refusal names both."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unspool.core.errors import ParameterError
from unspool.core.schedule import Schedule
from unspool.core.values import shown

if TYPE_CHECKING:
    from unspool.core.params import Params


def check(params: Params) -> None:
    """Raises ParameterError for the first pair of values that cannot both hold."""
    _sampling(params)
    _search(params)
    if params.continue_final_message and params.add_generation_prompt:
        _refuse(params, "continue_final_message", "add_generation_prompt",
                "the last message goes on or a new one begins; choose one")


def _sampling(params: Params) -> None:
    if params.do_sample and params.temperature == 0:
        _refuse(params, "temperature", "do_sample",
                "0 is greedy; raise the temperature or drop do_sample")
    if params.mirostat and params.active("adaptive_target") is not None:
        _refuse(params, "mirostat", "adaptive_target", "both steer the surprise; give one of them")
    if not isinstance(params.strategy, str) or params.do_sample is None:
        return
    if params.strategy == ("greedy" if params.do_sample else "sample"):
        _refuse(params, "strategy", "do_sample", "give one of them")


def _search(params: Params) -> None:
    width: Any = params.num_beams or 1
    if width == 1 or isinstance(width, Schedule):
        return
    if params.strategy in ("greedy", "sample"):
        _refuse(params, "strategy", "num_beams", "num_beams means beam search; give one of them")
    if params.n is not None and params.n > width:
        _refuse(params, "n", "num_beams", "a search has at most num_beams answers; widen it")


def _refuse(params: Params, one: str, other: str, fix: str) -> None:
    values = [f"{name}={shown(getattr(params, name))}" for name in (one, other)]
    raise ParameterError(f"{values[0]} with {values[1]}: they contradict; {fix}", one)
