"""Any causal language model of transformers, behind the same socket as our own.

Where the model lets us replace its attention, many texts run packed in one forward and memory
works. A check after loading compares that with plain forwards; where it cannot be or differs, every
text runs alone and whole. It knows no family by name.
"""
from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel
from transformers.utils import logging

from unspool.core.errors import ModelError, ParameterError
from unspool.core.sockets import Span
from unspool.files.folder import Source
from unspool.files.safetensors import INDEX, SINGLE
from unspool.models import batch
from unspool.models.fingerprint import fingerprint
from unspool.models.hf_attention import Packed, instead
from unspool.models.hf_check import reason_to_run_alone, require_causal
from unspool.models.hf_planes import Given, Wish, depth, given, joined
from unspool.models.hf_rope import LengthDependent, length_dependent
from unspool.models.planes import Planes, asked
from unspool.models.tensors import Rows, as_arrays

NO_LIMIT = 2**20  # context of a model whose config states none


class CausalLM:
    """A transformers model in evaluation mode. `remembers` says whether it packs."""

    numerics = "reference"

    def __init__(self, model: Any, notes: tuple[str, ...] = ()) -> None:
        self.model, self.training = model, model.training
        model.eval()
        text = model.config.get_text_config(decoder=True)
        self.context = getattr(text, "max_position_embeddings", None) or NO_LIMIT
        self.device = str(model.device)
        self.takes_rows = "logits_to_keep" in inspect.signature(model.forward).parameters
        self.rope: LengthDependent | None = length_dependent(model)
        embedded = model.get_input_embeddings().weight.shape[0]
        self.vocab = min(embedded, self.plain([0]).shape[-1])
        require_causal(self)
        reason = reason_to_run_alone(self)
        self.remembers = reason is None
        name = type(model).__name__
        self.layers, self.width, said = depth(model)
        self.tied = bool(getattr(text, "tie_word_embeddings", False))
        self.notes = (*notes, f"{name} runs through transformers, in numerics 'reference'", *said)
        if reason is not None:
            self.notes += (f"{name} reads each text alone and whole, without memory: {reason}",)
        facts = sorted((k, repr(v)) for k, v in model.config.to_dict().items() if k[0] != "_")
        weights = as_arrays(sorted(model.state_dict().items()))
        self.fingerprint = fingerprint((name, facts), weights)

    @torch.no_grad()
    def score(self, spans: Sequence[Span]) -> Rows:
        """Logits [wanted tokens, vocab] in float32 or float64."""
        wish = Wish(*asked(spans, self.layers, self.width))
        if self.remembers:
            return self._rows(spans, self._packed(Packed(spans), wish))
        for span in spans:
            if span.start:
                raise ModelError(
                    f"a text was continued at token {span.start}, but this model reads texts whole "
                    f"({self.notes[-1]}): use the memory 'none'"
                )
        return self._rows(spans, joined([self._alone(span, wish) for span in spans]))

    def packed(self, packed: Packed) -> Tensor:
        """[wanted tokens, width of the head] in one forward of all spans."""
        return self._packed(packed, Wish()).logits

    def plain(self, tokens: Sequence[int], rows: int = 1) -> Tensor:
        """[rows, width of the head]: the last rows of an ordinary forward of one text."""
        return self._plain(tokens, rows, Wish()).logits

    def _packed(self, packed: Packed, wish: Wish) -> Given:
        where, spans = self.model.device, packed.spans
        wanted = batch.wanted(spans)
        rows = torch.tensor(wanted, dtype=torch.long, device=where)
        keep = {"logits_to_keep": rows} if self.takes_rows else {}
        with instead(self.model.config):
            out = self.model(
                input_ids=torch.tensor([batch.tokens(spans)], device=where),
                position_ids=torch.tensor([batch.positions(spans)], device=where),
                use_cache=False,
                packed=packed,
                **keep,
                **wish.flags,
            )
        logits = out.logits[0] if self.takes_rows else out.logits[0][rows]
        return given(self.model, out, logits, wanted, wish)

    def _plain(self, tokens: Sequence[int], rows: int, wish: Wish) -> Given:
        if self.rope is not None:
            self.rope.reset()
        keep = {"logits_to_keep": max(rows, 1)} if self.takes_rows else {}  # 0 would be all
        ids = torch.tensor([tokens], device=self.model.device)
        with torch.no_grad():
            out = self.model(input_ids=ids, use_cache=False, **keep, **wish.flags)
            logits = out.logits[0][out.logits.shape[1] - rows :]
            return given(self.model, out, logits, range(len(tokens) - rows, len(tokens)), wish)

    def _alone(self, span: Span, wish: Wish) -> Given:
        tokens, end = span.tokens, len(span.tokens)
        if self.rope is None or end <= self.rope.original or not (span.rows or wish.hidden):
            return self._plain(tokens, span.rows, wish)
        # Each row as the model gives it for the text up to there: later tokens would change it.
        first = end - span.rows
        start = min(first, self.rope.original) if wish.hidden else first
        parts = [self._plain(tokens[:start], 0, wish)] if wish.hidden and start else []
        each = (self._plain(tokens[: i + 1], int(i >= first), wish) for i in range(start, end))
        return joined([*parts, *(part.last() for part in each)])

    def _rows(self, spans: Sequence[Span], given: Given) -> Rows:
        wide = torch.promote_types(given.logits.dtype, torch.float32)
        inner = {layer: rows[:, : self.vocab] for layer, rows in given.inner.items()}
        planes = Planes(spans, given.states, inner)
        return Rows(given.logits[:, : self.vocab].to(wide), planes)

    def close(self) -> None:
        """Let go of the model, left as it was found."""
        if self.rope is not None:
            self.rope.reset()
        self.model.train(self.training)
        self.model = None


def load(
    source: Source, device: str, dtype: torch.dtype, notes: tuple[str, ...] = ()
) -> CausalLM:
    """The model of a folder in transformers' format; nothing is fetched, no code of it is run.

    Raises ModelError for what transformers does not know or cannot read, for weights that do not
    fill the model, and for encoder-decoders.
    """
    if source.weights.name not in (SINGLE, INDEX):
        raise ModelError(f"{source.weights}: transformers reads only {SINGLE}: rename the file")
    safe = {"local_files_only": True, "trust_remote_code": False}
    try:
        config = AutoConfig.from_pretrained(source.folder, **safe)
        _refuse_encoder_decoder(config)
        with without_bars():
            model, found = AutoModelForCausalLM.from_pretrained(
                source.folder,
                config=config,
                dtype=dtype,
                use_safetensors=True,
                output_loading_info=True,
                **safe,
            )
    except ModelError:
        raise
    except Exception as error:  # on a damaged config the library may raise anything
        first = str(error).strip().splitlines()[:1] or [type(error).__name__]
        kind = source.config.get("model_type")
        raise ModelError(
            f"{source.folder}: neither this program nor transformers can read it "
            f"(model_type {kind!r}: {first[0]}): check config.json"
        ) from None
    if missing := sorted(found["missing_keys"]):
        raise ModelError(
            f"{source.folder}: {len(missing)} weights are missing ({', '.join(missing[:3])}): "
            "fetch the whole model"
        )
    if unused := sorted(found["unexpected_keys"]):
        notes += (f"{len(unused)} weights are not used: {', '.join(unused[:3])}",)
    return CausalLM(model.to(device), notes)


@contextmanager
def without_bars() -> Iterator[None]:
    """transformers draws bars on stderr unasked; who wants progress shows its own."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def wrap(model: Any, device: str | None, dtype: Any) -> CausalLM:
    """An already loaded transformers model, used where and as it is.

    Raises ModelError for another kind of object and for encoder-decoders, ParameterError when a
    device or number type is asked for that is not the model's.
    """
    if not isinstance(model, PreTrainedModel):
        raise ModelError(
            f"a {type(model).__name__} is no model: give a name, a path, or a transformers model "
            "(of a peft model, what merge_and_unload() returns)"
        )
    _refuse_encoder_decoder(model.config)
    if not hasattr(model, "get_output_embeddings") or model.get_output_embeddings() is None:
        raise ModelError(
            f"{type(model).__name__} has no language-model head: load it with AutoModelForCausalLM"
        )
    for name, want, has in (
        ("device", device, str(model.device)),
        ("dtype", dtype, str(model.dtype).removeprefix("torch.")),
    ):
        if want is not None and str(want).removeprefix("torch.") not in (has, "auto"):
            raise ParameterError(
                f"{name} = {str(want)!r}, but the loaded model has {has}: move it first, or leave "
                f"{name} out",
                name,
            )
    training = model.training
    try:
        return CausalLM(model)
    except ModelError:
        model.train(training)
        raise


def _refuse_encoder_decoder(config: Any) -> None:
    if getattr(config, "is_encoder_decoder", False):
        raise ModelError(
            f"model_type {config.model_type!r} is an encoder-decoder, which is not in this version:"
            " use a causal language model"
        )
