"""What the replaced attention refuses, and that it is replaced only for a while."""

import pytest
import torch
from models_zoo import hf_tiny, span

from unspool.models.hf_attention import NAME, Packed, attention, instead
from unspool.models.rope import UnsupportedError


class Module:
    layer_idx = 3
    is_causal = True


def call(mask=None, module=Module, **asked):
    q, k = torch.randn(1, 4, 2, 8), torch.randn(1, 2, 2, 8)
    packed = Packed([span([1, 2])])
    out, _ = attention(module, q, k, k, mask, packed=packed, **asked)
    return out, packed


def test_shapes_and_the_window_that_was_asked_for():
    out, packed = call(scaling=0.3, sliding_window=5, dropout=0.0, position_ids=torch.zeros(1, 2))
    assert out.shape == (1, 2, 4, 8) and packed.windows == {3: 5}
    assert call(softcap=None, is_causal=True)[0].isfinite().all()


@pytest.mark.parametrize(
    "asked, named",
    [
        ({"softcap": 50.0}, "softcap"),
        ({"s_aux": torch.zeros(4)}, "s_aux"),
        ({"position_bias": torch.zeros(1)}, "position_bias"),
        ({"is_causal": False}, "not causal"),
        ({"mask": torch.zeros(1, 1, 2, 2)}, "attention mask of its own"),
        ({"module": type("Both", (Module,), {"is_causal": False})}, "not causal"),
    ],
)
def test_what_would_change_numbers_is_refused(asked, named):
    with pytest.raises(UnsupportedError, match=named):
        call(**asked)


def test_the_attention_is_replaced_only_within():
    config = hf_tiny().config
    with instead(config):
        assert config._attn_implementation == NAME
    assert config._attn_implementation == "sdpa"
    with pytest.raises(RuntimeError), instead(config):
        raise RuntimeError
    assert config._attn_implementation == "sdpa"
