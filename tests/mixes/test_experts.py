import numpy as np
import pytest
from mixes_zoo import OTHER, OUT, VOICE, agree, blended, probabilities, random_rows

from unspool.core.errors import ParameterError
from unspool.mixes import Experts


@pytest.mark.parametrize("vocab", [3, 10, 50])
@pytest.mark.parametrize(("alpha", "mass"), [(2, 0.9), (-3.2, 0.5), (0.5, 1)])
def test_by_definition(alpha, mass, vocab):
    own, expert, anti = random_rows(vocab, 3, vocab).tolist()
    p, held, kept = probabilities(own), 0.0, []
    for token in sorted(range(vocab), key=lambda i: -own[i]):
        if kept and held >= mass:
            break
        kept.append(token)
        held += p[token]
    want = [own[i] + alpha * (expert[i] - anti[i]) if i in kept else OUT for i in range(vocab)]
    agree(blended(Experts(VOICE, OTHER, alpha, mass), own, expert, anti), want)


def test_equal_experts_leave_the_cut_row():
    own, expert = random_rows(1, 2)
    out = blended(Experts(VOICE, OTHER), own, expert, expert)
    kept = out > OUT
    agree(out[kept], own[kept], 0)
    assert np.array(probabilities(own))[kept].sum() >= 0.9


def test_a_negative_alpha_swaps_the_two():
    own, expert, anti = random_rows(2, 3)
    agree(blended(Experts(VOICE, OTHER, 2), own, expert, anti),
          blended(Experts(VOICE, OTHER, -2), own, anti, expert), 0)


@pytest.mark.parametrize(("given", "name"), [
    ((None, VOICE), "expert_model"), ((VOICE, None), "anti_expert_model"),
    ((VOICE, OTHER, 2000), "experts_alpha"), ((VOICE, OTHER, 1, 1.5), "experts_top_p")])
def test_bad_values_are_refused_by_name(given, name):
    with pytest.raises(ParameterError, match=name) as caught:
        Experts(*given)
    assert caught.value.name == name


def test_the_voices_in_their_order():
    assert Experts(VOICE, OTHER).voices == (VOICE, OTHER)
