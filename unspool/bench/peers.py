"""The engines that ours is measured beside, by name. Data only: nothing is looked for or started.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SHARED = ".venv-peers"  # the environment of the peers that need none of their own


@dataclass(frozen=True, slots=True)
class Peer:
    """`gguf`, `folder`: whether it reads a GGUF, and the folder of a safetensors checkpoint.

    `home`: the folder of its environment. `env`: what is set in its process's environment.
    """

    gguf: bool
    folder: bool
    home: str = SHARED
    env: Mapping[str, str] = field(default_factory=dict)


OFFLINE = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
# Threads that spin while they wait would take a core from the engine that works.
PASSIVE = {"OMP_WAIT_POLICY": "PASSIVE"}

PEERS: Mapping[str, Peer] = {
    "transformers": Peer(gguf=True, folder=True, env=OFFLINE | PASSIVE),
    "llama_cpp": Peer(gguf=True, folder=False),
    "openvino_genai": Peer(gguf=True, folder=False),
    "vllm": Peer(gguf=False, folder=True, home=".venv-peers-vllm",
                 env=OFFLINE | PASSIVE | {"VLLM_CPU_OMP_THREADS_BIND": "nobind"}),
}
