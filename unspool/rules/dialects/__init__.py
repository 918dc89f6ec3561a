"""Dialects: the orders, defaults and counted tokens of other engines. Pure data."""
from unspool.rules.dialects.dialect import Dialect
from unspool.rules.dialects.hf import HF
from unspool.rules.dialects.llama_cpp import LLAMA_CPP
from unspool.rules.dialects.mlx import MLX
from unspool.rules.dialects.sglang import SGLANG
from unspool.rules.dialects.stages import CALM, GROUPS, STAGES, Stage, spellings
from unspool.rules.dialects.unspool import UNSPOOL
from unspool.rules.dialects.vllm import VLLM, VLLM_V2

DIALECTS = {d.name: d for d in (UNSPOOL, HF, VLLM, VLLM_V2, SGLANG, LLAMA_CPP, MLX)}

__all__ = ["CALM", "DIALECTS", "Dialect", "GROUPS", "STAGES", "Stage", "UNSPOOL", "spellings"]
