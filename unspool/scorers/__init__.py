"""Scorers: branches in, floats or answers out, found by name. They know no strategy and no rows.

An entry makes the scorer for a model from the bytes that each of its tokens adds to a text.
"""
from collections.abc import Callable

from unspool.core.sockets import Extractor, Reward, Utility
from unspool.scorers.bleu import Bleu
from unspool.scorers.chrf import ChrF
from unspool.scorers.classify import AttributeScorer, Bag, train
from unspool.scorers.extract import Boxed, Number, Pattern
from unspool.scorers.likelihood import Likelihood
from unspool.scorers.own import OwnExtractor, OwnReward, OwnUtility
from unspool.scorers.states import States
from unspool.scorers.text import Piece

UTILITIES: dict[str, Callable[[Piece], Utility]] = {
    "chrf": ChrF,
    "chrf++": lambda piece: ChrF(piece, word_order=2),
    "bleu": Bleu,
    "states": lambda piece: States(),
}
REWARDS: dict[str, Callable[[Piece], Reward]] = {
    "logprob": lambda piece: Likelihood(),
    "mean_logprob": lambda piece: Likelihood(mean=True),
}
EXTRACTORS: dict[str, Callable[..., Extractor]] = {  # `pattern` also takes a regex and a group
    "number": Number,
    "boxed": Boxed,
    "pattern": lambda piece, regex, group=0: Pattern(regex, group, piece=piece),
}

__all__ = ["EXTRACTORS", "REWARDS", "UTILITIES", "AttributeScorer", "Bag", "Bleu", "Boxed", "ChrF",
           "Likelihood", "Number", "OwnExtractor", "OwnReward", "OwnUtility", "Pattern", "Piece",
           "States", "train"]
