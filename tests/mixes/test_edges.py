"""What every mix obeys: a row is its own, nothing is NaN, something is always left."""
import warnings
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from mixes_zoo import OUT, SAMPLES, heard, random_rows, slot

from unspool.core.schedule import Schedule, at, steady
from unspool.core.sockets import Heard

EVERY = pytest.mark.parametrize("mix", SAMPLES.values(), ids=SAMPLES)
NUMBER = st.one_of(st.floats(-30, 30), st.sampled_from([0.0, OUT, OUT, 700.0]))


@EVERY
@pytest.mark.parametrize("vocab", [3, 16, 50, 1001])
def test_a_row_has_the_same_bits_alone_and_among_others(mix, vocab):
    said = heard(mix, random_rows(1, 7, vocab), holes=0.1)
    together = mix.blend(said)
    for i in range(7):
        assert mix.blend(slot(said, i)).tobytes() == together[i:i + 1].tobytes()


@EVERY
def test_how_the_rows_lie_in_memory_changes_no_bit(mix):
    said = heard(mix, random_rows(2, 4, 33))

    def turned(rows):
        return np.asfortranarray(rows)

    other = Heard(turned(said.own), [turned(o) for o in said.others],
                  {j: turned(r) for j, r in said.inner.items()}, said.texts)
    assert mix.blend(other).tobytes() == mix.blend(said).tobytes()


@EVERY
@given(data=st.data())
def test_whatever_the_readers_rule_out_a_token_is_left_and_none_is_nan(mix, data):
    rows = arrays(np.float64, (2, 5), elements=NUMBER)
    own = data.draw(rows)
    said = Heard(own, [data.draw(rows) for _ in mix.voices],
                 {layer: data.draw(rows) for layer in mix.layers}, [[1, 2], []])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = mix.blend(said)
    assert not np.isnan(out).any() and not (out == np.inf).any()
    assert (out[own == OUT] == OUT).all()
    assert ((out > OUT).any(axis=1) == (own > OUT).any(axis=1)).all()


@EVERY
def test_a_mix_never_writes_into_what_it_hears(mix):
    said = heard(mix, random_rows(3, 3), holes=0.2)
    before = [a.copy() for a in (said.own, *said.others, *said.inner.values())]
    mix.blend(said)
    after = (said.own, *said.others, *said.inner.values())
    assert all(a.tobytes() == b.tobytes() for a, b in zip(before, after, strict=True))


@EVERY
def test_a_reader_that_is_nan_is_not_hidden(mix):
    """The engine names the row; a mix that made a number of it would hide a broken model."""
    said = heard(mix, random_rows(4, 1))
    for rows in (said.own, *said.others, *said.inner.values()):
        kept = rows.copy()
        rows[:] = np.nan
        assert np.isnan(mix.blend(said)).any()
        rows[:] = kept


@EVERY
def test_no_slots_give_no_rows(mix):
    assert mix.blend(heard(mix, np.zeros((0, 5)))).shape == (0, 5)


@EVERY
def test_a_schedule_stands_where_a_number_does(mix):
    """A constant one gives the same bits, and one that changes is taken at its step."""
    said = heard(mix, random_rows(5, 2))
    names = [f.name for f in fields(mix) if type(getattr(mix, f.name)) is float]
    for name in names:
        number = getattr(mix, name)
        still = replace(mix, **{name: Schedule(((0, number),))})
        moving = replace(mix, **{name: Schedule(((0, number / 2), (4, number)))})
        assert not steady(moving)
        for scheduled in (at(still, 3), at(moving, 4)):
            assert scheduled == mix
            assert scheduled.blend(said).tobytes() == mix.blend(said).tobytes()
        with pytest.raises(TypeError, match="a schedule still"):
            moving.blend(said)
    assert names or hasattr(mix, "weights")


@EVERY
def test_a_mix_is_a_value(mix):
    assert replace(mix) == mix and hash(replace(mix)) == hash(mix)


def test_mixes_join_one_after_the_other():
    """What one removed stays removed, and the next one blends what is left."""
    own = random_rows(6, 3)
    first = SAMPLES["contrast"]
    cut = first.blend(heard(first, own))
    for mix in SAMPLES.values():
        out = mix.blend(heard(mix, cut))
        assert (out[cut == OUT] == OUT).all() and (out > OUT).any(axis=1).all()
