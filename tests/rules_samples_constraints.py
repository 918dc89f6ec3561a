"""Values worth trying of the rule that applies a constraint, weak to strong. None is neutral: what
it leaves is always a list of its own."""
import numpy as np

from unspool.constraints import Vocabulary, choice
from unspool.rules import constrain

WORDS = Vocabulary([*(bytes([97 + i]) for i in range(8)), b"ab", b"ba", b"", b""])
IDS = np.random.default_rng(0).integers(0, 5, (300, 9)).tolist()  # more than a test writes
END = 11

SAMPLES = {"constrain": (
    constrain(data=choice(IDS, WORDS)),
    constrain(data=choice(["ab" * 6, "abba" * 3, "ba" * 7, "ab"], WORDS, {END})),
    constrain(data=choice([[0] * 9, [1] * 9], WORDS)))}
NEUTRAL = {}
