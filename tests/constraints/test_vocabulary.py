"""Which tokens a text can begin with: by definition, for any pieces."""
from hypothesis import given
from hypothesis import strategies as st

from unspool.constraints.vocabulary import IDS, Vocabulary

PIECES = st.lists(st.binary(max_size=3).map(lambda b: bytes(x % 3 for x in b)), max_size=12)


@given(PIECES, st.binary(max_size=6).map(lambda b: bytes(x % 3 for x in b)))
def test_a_text_begins_with_the_tokens_that_it_starts_with(pieces, text):
    found = {token for _, tokens in Vocabulary(pieces).begins(text) for token in tokens}
    assert found == {i for i, piece in enumerate(pieces) if piece and text.startswith(piece)}


@given(PIECES, st.binary(max_size=6))
def test_pieces_come_shortest_first_each_with_its_tokens(pieces, text):
    vocabulary = Vocabulary(pieces)
    found = list(vocabulary.begins(text))
    assert [len(piece) for piece, _ in found] == sorted({len(piece) for piece, _ in found})
    for piece, tokens in found:
        assert tokens == sorted(tokens) and {vocabulary.of(token) for token in tokens} == {piece}


def test_tokens_without_bytes_and_unknown_ones_stand_for_nothing():
    vocabulary = Vocabulary([b"a", b"", b"a"])
    assert [vocabulary.of(token) for token in (0, 1, 2, 3)] == [b"a", b"", b"a", b""]
    assert list(vocabulary.begins(b"ab")) == [(b"a", [0, 2])]
    assert list(Vocabulary([]).begins(b"ab")) == []


def test_an_id_stands_for_itself():
    assert IDS.of(7) == (7,)
    assert list(IDS.begins((7, 8))) == [((7,), [7])] and list(IDS.begins(())) == []
