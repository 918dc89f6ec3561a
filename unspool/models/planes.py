"""What a forward gives besides its rows of logits: hidden states, and logits of inner layers.

The last hidden state of a token is what the last norm gives and the head multiplies. Inner layer j
is what j layers made of the token, 0 its embedding; its logits are the head's for that, without a
norm (arXiv:2309.03883). It takes arrays of any library, and knows spans and no model.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from unspool.core.errors import ModelError
from unspool.core.sockets import Span
from unspool.models import batch


def asked(spans: Sequence[Span], layers: int, width: int) -> tuple[bool, tuple[int, ...]]:
    """Whether a span wants hidden states, and which inner layers some span wants, ascending.

    `layers`, `width`: the model's, see `core.sockets.Model`. Raises ModelError for what it cannot
    give.
    """
    hidden, wanted = False, set[int]()
    for span in spans:
        hidden = hidden or span.hidden
        wanted.update(span.layers)
    if hidden and not width:
        raise ModelError("the hidden states of this model cannot be read")
    for layer in wanted:
        if not 0 <= layer < layers:
            raise ModelError(f"the inner layer {layer} of this model cannot be read: "
                             + (f"they run from 0 to {layers - 1}" if layers else "none can be"))
    return hidden, tuple(sorted(wanted))


class Planes:
    """`states`: [tokens, width] of all spans, None where no span asks for them. `inner`: by layer
    [wanted tokens, vocab]. Both as the forward has them, which may be views that its next run
    writes over.

    States of spans that ask are put with their texts at once, so that later forwards find them. A
    lease without a store is that of a model which reads every text whole.
    """

    def __init__(self, spans: Sequence[Span], states: Any = None,
                 inner: Mapping[int, Any] | None = None) -> None:
        self.spans, self.states, self.inner = spans, states, inner or {}
        if states is not None:
            for span, at in batch.slices(spans):
                if span.hidden and span.lease.store is not None:
                    span.lease.store.put_states(span.start, states[at])

    @cached_property
    def places(self) -> list[slice]:
        return [at for _, at in batch.slices(self.spans)]

    def hidden(self, number: int) -> Any:
        """[rows, width] of the rows of a span that asked for hidden states."""
        at = self._tokens(number)
        return self.states[at.stop - self.spans[number].rows : at.stop]

    def text(self, number: int) -> Any:
        """[tokens, width] of such a span's whole text, up to its last row."""
        at, span = self._tokens(number), self.spans[number]
        if span.start == 0:  # a memory that keeps nothing may have let go of the store by now
            return self.states[at]
        return span.lease.store.states(span.start + len(span.tokens))

    def logits(self, number: int, layer: int) -> Any:
        """[rows, vocab] of a span that asked for the inner layer."""
        span = self.spans[number]
        if layer not in span.layers:
            raise ModelError(f"span {number} did not ask for the inner layer {layer}")
        first = sum(other.rows for other in self.spans[:number])
        return self.inner[layer][first : first + span.rows]

    def _tokens(self, number: int) -> slice:
        if not self.spans[number].hidden:
            raise ModelError(f"span {number} did not ask for hidden states")
        return self.places[number]
