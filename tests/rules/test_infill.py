"""Infill: when it ends, which tokens are one, what is sure enough; and llama.cpp's own loops."""
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from texts_zoo import WAYS, values

from unspool.rules import infill, top_k
from unspool.rules.infill import Spelling

PIECES = (b"a", b"ab", b"abc", b"b", b"bc", b"a", b"", b"x")
WORDS = Spelling(PIECES, (6,))


def kept(p, words=WORDS, dtype=np.float64):
    with np.errstate(divide="ignore"):
        row = np.log(np.asarray(p))
    out = values(row, infill(data=words), dtype=dtype)
    stays = np.flatnonzero(out > -np.inf)
    assert out[stays] == pytest.approx(row[stays], rel=1e-6)  # what stays keeps its logit
    return stays.tolist()


@WAYS
def test_by_hand(dtype):
    # p(end) is 0.1: 3 * 0.1 * 4 > 0.9, so the text ends
    assert kept([0, 0.5, 0, 0.3, 0.1, 0, 0.1, 0], dtype=dtype) == [6]
    # 3 * 0.01 * 4 < 0.99: "a" and "ab" are one, "b" is too unlikely
    assert kept([0.5, 0.4, 0, 0.09, 0, 0, 0.01, 0], dtype=dtype) == [0, 6]
    # neither has 0.2, and both together 0.3, the likelier of them
    assert kept([0.14, 0.16, 0, 0.69, 0, 0, 0.01, 0], dtype=dtype) == [3, 6]
    # two that stay: at least a third each
    assert kept([0.4, 0, 0, 0.59, 0, 0, 0.01, 0], dtype=dtype) == [0, 3, 6]
    assert kept([0.25, 0, 0, 0.74, 0, 0, 0.01, 0], dtype=dtype) == [3, 6]


@WAYS
def test_where_nothing_is_sure_it_ends(dtype):
    words = Spelling(tuple(bytes([i]) for i in range(97, 107)), (9, 8))
    row = [0.0] * 8 + [-np.inf] * 2
    got = values(row, infill(data=words), dtype=dtype)
    assert np.flatnonzero(got > -np.inf).tolist() == [9]
    got = values(row, top_k(3), infill(data=words), dtype=dtype)
    assert np.flatnonzero(got > -np.inf).tolist() == [0, 1, 2]


def test_ids_without_a_piece_are_no_text():
    assert kept([0.5, 0.5, 0, 0, 0, 0, 0, 0], Spelling((b"a",), (6,))) == [0, 1]


def loops(p, words):
    """The same as it is written there: every token against every other. Also how near a decision
    came to its border."""
    order = [i for i in np.argsort(-p, stable=True) if p[i] > 0]
    p = {int(i): float(p[i]) for i in order}
    ends = set(words.ends) & p.keys()
    end = sum(p[i] for i in ends)
    near = [3 * end * len(p) - sum(p.values()) + end]
    if near[0] > 0:
        return sorted(ends), near
    gone = set()
    for one in p:
        for other in p:
            if one in gone:
                break
            if one == other or other in gone or not words.pieces[one]:
                continue
            if words.pieces[other].startswith(words.pieces[one]):
                near.append(p[other] - p[one])
                less, more = (one, other) if p[other] > p[one] else (other, one)
                p[more] += p[less]
                p[less] = 0.0
                gone.add(less)
    stays = [i for i in p if i not in gone and (p[i] >= 0.2 or i in ends)]
    others = sum(i not in ends for i in stays)
    mass = sum(p[i] for i in stays)
    near += [p[i] - 0.2 for i in p]
    if not others:
        return [words.ends[0]], near
    near += [p[i] / mass - 1 / (others + 1) for i in stays]
    return sorted(i for i in stays if i in ends or p[i] / mass >= 1 / (others + 1)), near


@given(arrays(np.float64, 8, elements=st.integers(0, 40)), st.integers(0, 400))
def test_it_is_its_definition(weights, more):
    weights[7] += more
    weights[weights > 0] += 1e-4 * np.arange(8)[weights > 0]  # no two are equal
    if weights.any():
        p = weights / weights.sum()
        p[6] /= 30  # the end, rarely likely enough
        p /= p.sum()
        want, near = loops(p, WORDS)
        assume(min(map(abs, near)) > 1e-9)  # rounding may decide on the border itself
        with np.errstate(divide="ignore"):
            out = values(np.log(p), infill(data=WORDS))
        assert np.flatnonzero(out > -np.inf).tolist() == want
