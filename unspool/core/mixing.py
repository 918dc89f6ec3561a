"""The parameters that bring in other readers of the same text. See `params.py`."""
# ruff: noqa: RUF009 -- each row of the table is declared by a short call
from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from unspool.core.searching import Searching
from unspool.core.values import p

reader = partial(p, "other readers", part=4)
MODEL = "a loaded model, a name or a path"


@dataclass(frozen=True, slots=True)
class Mixing(Searching):
    """The part of `Params` that mixes are made from, in the order in which they are joined."""

    ensemble: Any = reader(
        None, "", f"other models of the same vocabulary, a list; each {MODEL}", neutral=([],))
    ensemble_weights: Any = reader(None, "", "their weights, this model's first; unset: equal")
    ensemble_kind: str | None = reader(
        "linear", "linear|log", "probabilities are averaged, or log-probabilities")
    dola_layers: Any = reader(
        None, "", "DoLa: layers that the last one is contrasted with: low, high, or a list")
    contrast_alpha: float | None = reader(
        0.1, "0..1", "contrastive decoding keeps tokens of this share of the likeliest")
    contrast_weight: float | None = reader(1.0, "0..1000", "weight of the amateur")
    amateur_model: Any = reader(None, "", f"contrastive decoding: the weaker model, {MODEL}")
    amateur_temperature: float | None = reader(1.0, "0<..1000", "its temperature")
    expert_model: Any = reader(None, "", f"DExperts: the model to lean to, {MODEL}")
    anti_expert_model: Any = reader(None, "", f"and the one to lean from, {MODEL}")
    experts_alpha: float | None = reader(2.0, "0..1000", "weight of their difference")
    context_alpha: float | None = reader(
        0.0, "0..1000", "weight of the prompt with its context over context_free_prompt")
    context_free_prompt: Any = reader(None, "", "the same prompt without its context")
    guidance_scale: float | None = reader(
        1.0, "-1000..1000", "classifier-free guidance away from negative_prompt; 1 is none")
    negative_prompt: Any = reader(
        None, "", "what stands in the prompt's place there; unset: its last token alone",
        neutral=("",))
    attribute: Any = reader(
        None, "", "FUDGE: a classifier of growing texts; from Python only")
    attribute_weight: float | None = reader(1.0, "0..1000", "its weight")
    boosts: Any = reader(
        None, "", "words and what is added to the logits of their tokens where they begin or go "
        "on: {\" sea\": 1.5}", neutral=({},))
    boost_weight: float | None = reader(1.0, "-1000..1000", "a factor for all of them")
