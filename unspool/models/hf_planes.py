"""Hidden states and inner logits of a transformers model, as its own code gives them.

The last hidden state is what transformers calls `hidden_states[-1]`: of nearly all families what
the last norm gives and the head multiplies. A model in which that is not so says it in its notes.
Inner layer j is `hidden_states[j]`, its logits the output embeddings of that. It knows no family.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Wish:
    """What a forward is asked for besides logits, see `planes.asked`."""

    hidden: bool = False
    layers: tuple[int, ...] = ()

    @property
    def flags(self) -> dict[str, bool]:
        """What to tell transformers."""
        return {"output_hidden_states": True} if self.hidden or self.layers else {}


@dataclass(frozen=True, slots=True)
class Given:
    """`logits` [rows, width of the head]; `states` [tokens, width], None where not asked for;
    `inner`: by layer the same as `logits`."""

    logits: Tensor
    states: Tensor | None = None
    inner: Mapping[int, Tensor] = field(default_factory=dict)

    def last(self) -> Given:
        """With the state of the last token alone."""
        states = None if self.states is None else self.states[-1:]
        return Given(self.logits, states, self.inner)


def given(model: Any, out: Any, logits: Tensor, rows: Sequence[int], wish: Wish) -> Given:
    """What is wished for of an answer to one row of tokens, `rows` of which want logits."""
    states = out.hidden_states[-1][0] if wish.hidden else None
    head: Any = model.get_output_embeddings()
    inner = {j: head(out.hidden_states[j][0, list(rows)]) for j in wish.layers}
    return Given(logits, states, inner)


def joined(parts: Sequence[Given]) -> Given:
    """The parts of one forward, one after the other."""
    states = [part.states for part in parts if part.states is not None]
    inner = {j: torch.cat([part.inner[j] for part in parts]) for j in parts[0].inner}
    logits = torch.cat([part.logits for part in parts])
    return Given(logits, torch.cat(states) if states else None, inner)


@torch.no_grad()
def depth(model: Any) -> tuple[int, int, tuple[str, ...]]:
    """How many inner layers can be read, the width of a hidden state (0: none can be), and notes,
    found out on one token."""
    name = type(model).__name__
    ids = torch.tensor([[0]], device=model.device)
    try:
        out = model(input_ids=ids, use_cache=False, output_hidden_states=True)
        states, head = out.hidden_states, model.get_output_embeddings()
        width = int(states[-1].shape[-1])
    except Exception as error:  # a model may fail in any way on a call it was not made for
        return 0, 0, (f"the hidden states of {name} cannot be read ({type(error).__name__})",)
    layers = getattr(model.config.get_text_config(decoder=True), "num_hidden_layers", None)
    unread = f"the inner layers of {name} cannot be read"
    if layers != len(states) - 1:
        return 0, width, (f"{unread}: transformers gives {len(states)} hidden states",)
    try:
        logits = [head(state[0]) for state in states]
    except Exception as error:  # its layers may have other widths than its head
        return 0, width, (f"{unread}: its head does not take them ({type(error).__name__})",)
    if _alike(logits[-1], out.logits[0]):
        return layers, width, ()
    return layers, width, (f"the logits of {name} are not its head times its last hidden state, "
                           "which is what transformers calls hidden_states[-1]",)


def _alike(got: Tensor, want: Tensor) -> bool:
    loose = 1e-4 if want.dtype in (torch.float32, torch.float64) else 5e-2
    return got.shape == want.shape and torch.allclose(
        got, want.to(got), rtol=0, atol=loose * float(want.abs().max()))
