"""What peers reached elsewhere, to tell a slow peer from a badly built one.

Medians of two AVX2 cores that read 27 GB/s, on SmolLM2-135M in Q4_1 (98 MB); of a range the lower
end. A peer far below them, scaled to this machine's memory, lacks instructions or threads here:
comparing with it would flatter us.
"""
from __future__ import annotations

from collections.abc import Mapping

QUOTED_GB_S = 27.0
LOWEST_SHARE = 0.6
# Tokens a second, by verb and by the point that they are of.
QUOTED: Mapping[tuple[str, str], Mapping[str, float]] = {
    ("decode", "decode"): {"transformers": 13, "vllm": 21, "openvino_genai": 50, "llama_cpp": 80},
    ("batch", "16"): {"vllm": 32, "transformers": 105, "llama_cpp": 150},
    ("prefill", "512"): {"vllm": 41, "llama_cpp": 180, "transformers": 430},
}


def misconfigured(verb: str, label: str, peer: str, rate: float, gb_s: float | None) -> str | None:
    """Why a peer's rate at a point is no fair one; None when it is, or when nothing is quoted."""
    quoted = QUOTED.get((verb, label), {}).get(peer)
    if quoted is None or not gb_s:
        return None
    lowest = LOWEST_SHARE * quoted * gb_s / QUOTED_GB_S
    if rate >= lowest:
        return None
    return (f"{rate:.1f} tok/s, below {lowest:.1f}: {LOWEST_SHARE:.0%} of the {quoted:g} quoted at "
            f"{QUOTED_GB_S:g} GB/s, scaled to the {gb_s:.1f} GB/s read here")
