"""Mixes: what several readers of a text say becomes one row of logits, before any rule."""
from unspool.mixes.attribute import Attribute
from unspool.mixes.boost import Boost, styles
from unspool.mixes.context import ContextAware
from unspool.mixes.contrast import Contrast
from unspool.mixes.ensemble import Ensemble
from unspool.mixes.experts import Experts
from unspool.mixes.guidance import Guidance
from unspool.mixes.layers import Dola, buckets
from unspool.mixes.logprobs import LogProbabilities

__all__ = ["Attribute", "Boost", "ContextAware", "Contrast", "Dola", "Ensemble", "Experts",
           "Guidance", "LogProbabilities", "buckets", "styles"]
