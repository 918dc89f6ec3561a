"""What the engines read: windows of one text, the same ids for all, other ones in every round.

No two rows and no two rounds begin alike, so that what an engine remembers of earlier prompts is
of no use to it.
"""
from __future__ import annotations

from unspool.core.errors import ModelError
from unspool.text.tokenizer import Tokenizer

TEXT = (
    "The ferry left at six, when the lamps on the quay were still lit and the water was the colour "
    "of slate. Anna stood at the rail with the parcel under her arm. It held a clock, wrapped in "
    "two shirts, that had not gone for eleven years; her brother had written that he knew a man "
    "who could mend anything with wheels in it. Behind her the town drew together into a single "
    "line of windows, then into a glow, then into nothing. A boy came round with tea. He asked "
    "whether she had been on the island before, and when she said no he told her, as though he "
    "had been waiting for somebody to tell, that there were three roads there and that all of them "
    "ended at the lighthouse. The tea was too hot and tasted of tin.\n\n"
    "In the harbour office the clerk was counting crates. \"Forty-one,\" he said, without looking "
    "up, \"and there should be forty-two. There are always forty-two.\" He wrote the number down, "
    "crossed it out, and wrote it again. On the wall hung a map on which the coast had been drawn "
    "by several hands at several times, so that some of the bays were blue and some were brown, "
    "and one, in the north, was only pencil. Anna asked for the street in the letter. The clerk "
    "turned the map towards her and put his finger on the pencil bay. \"That is not a street,\" he "
    "said. \"That is where the road used to be.\"\n\n"
    "She walked. The first road went along the sea wall, past nets hung to dry and a row of boats "
    "with women's names. The second climbed between stone walls to a field where two horses looked "
    "at her and went on eating. At noon it began to rain, a fine rain that one noticed only on "
    "other things: on the leaves, on the backs of the horses, on the paper round the clock. She "
    "thought of the workshop as her brother had described it, a long room under a roof of glass, "
    "with a bench for every season, and of the man himself, who was said to answer questions only "
    "after he had taken them apart. What would she ask? Whether it could be mended, of course. "
    "What it would cost. How long she should wait. But as the path turned and she saw the tower, "
    "white against the rain, with its one green door, she found that she had another question, "
    "and that she had carried it farther than the clock.\n"
)


class Prompts:
    """The text as a model's tokenizer reads it. Raises ModelError where there is none."""

    def __init__(self, words: Tokenizer | None) -> None:
        if words is None:
            raise ModelError("this model has no tokenizer, and what is measured reads a text: put "
                             "its tokenizer.json beside it")
        self.ids = words.encode(TEXT, start=False)

    def rows(self, count: int, length: int, turn: int) -> list[list[int]]:
        """`count` prompts of `length` tokens for a round."""
        starts = (53 * turn + 29 * row + 11 * length for row in range(count))
        return [[self.ids[(start + i) % len(self.ids)] for i in range(length)]
                for start in starts]
