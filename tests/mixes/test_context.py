import pytest
from mixes_zoo import VOICE, agree, blended, random_rows

from unspool.core.errors import ParameterError
from unspool.mixes import ContextAware


@pytest.mark.parametrize("alpha", [0.5, 1, 2.5])
def test_by_definition_on_raw_logits(alpha):
    own, other = random_rows(1, 2, 20)
    agree(blended(ContextAware(alpha, VOICE), own, other),
          [(1 + alpha) * a - alpha * b for a, b in zip(own, other, strict=True)], 1e-13)


def test_alpha_0_is_the_own_row_bit_for_bit():
    own, other = random_rows(2, 2, 20)
    own[3], other[3] = -0.0, -2.0
    assert blended(ContextAware(0, VOICE), own, other).tobytes() == own.tobytes()


def test_equal_voices_change_nothing():
    own = random_rows(3)[0]
    agree(blended(ContextAware(2.0, VOICE), own, own), own, 1e-12)


def test_it_is_what_the_context_adds():
    """A token that both find likely gains nothing, one that only the context brings does."""
    out = blended(ContextAware(1.0, VOICE), [2.0, 2.0, 0.0], [2.0, 0.0, 0.0])
    assert out.tolist() == [2.0, 4.0, 0.0]


def test_a_bad_alpha_is_refused_by_name():
    with pytest.raises(ParameterError, match=r"context_alpha=-0\.5"):
        ContextAware(-0.5, VOICE)
