"""Values worth trying of the rules that look at the text or name tokens, weak to strong, and those
that change nothing. Functions are called with the text so far."""
import numpy as np

from unspool.rules import (
    allowed_ids,
    bad_words,
    begin_suppress,
    custom,
    dry,
    encoder_no_repeat_ngram,
    encoder_repetition_penalty,
    exponential_decay,
    forced_first,
    forced_last,
    frequency_penalty,
    infill,
    logit_bias,
    min_length,
    min_new_tokens,
    no_repeat_ngram,
    prefix_allowed,
    presence_penalty,
    suppress,
)
from unspool.rules.infill import Spelling
from unspool.rules.rows import EVERYTHING, GENERATED

WORDS = Spelling(tuple(f"{i % 40}".encode() for i in range(400)), (1, 7))


def same(ids, logits):
    return logits


def halved(ids, logits):
    return logits / 2


def without_the_last(ids, logits):
    logits[ids[-1]] = -np.inf
    return logits


def seen(batch, ids):
    return sorted(set(ids.tolist()))


def seen_lately(batch, ids):
    return ids[-3:]


SAMPLES = {
    "frequency_penalty": (
        frequency_penalty(0.1), frequency_penalty(0.4, EVERYTHING, 4), frequency_penalty(-0.4),
        frequency_penalty(0.7, EVERYTHING), frequency_penalty(2.0)),
    "presence_penalty": (
        presence_penalty(0.1), presence_penalty(0.4, EVERYTHING, 4), presence_penalty(-0.4),
        presence_penalty(0.7, GENERATED, 2), presence_penalty(2.0, EVERYTHING)),
    "encoder_repetition_penalty": (
        encoder_repetition_penalty(1.1), encoder_repetition_penalty(0.7),
        encoder_repetition_penalty(3.0)),
    "no_repeat_ngram": tuple(no_repeat_ngram(n) for n in (40, 4, 3, 2, 1)),
    "encoder_no_repeat_ngram": tuple(encoder_no_repeat_ngram(n) for n in (40, 3, 2, 1)),
    "dry": (
        dry(0.2), dry(0.8, data=((3,),)), dry(0.8, 1.75, 1, 8, data=((4,), (1, 2), (1, 2, 0))),
        dry(0.5, 1.0, 0), dry(1.5, 1.3, 1, data=((9000,),))),
    "exponential_decay": (
        exponential_decay(50, 1.5, data=(1,)), exponential_decay(2, 1.05, data=(1, 7)),
        exponential_decay(0, 0.8, data=(0,)), exponential_decay(0, 1.3, data=(7, 7))),
    "logit_bias": (
        logit_bias(data=(((2,), 0.5), ((2, 3), 1.0))), logit_bias(data=(((11,), -100.0),)),
        logit_bias(data=(((1,), 2.5), ((1,), -1.0), ((0, 1), 0.5), ((4, 2, 2), 3.0))),
        logit_bias(data=(((5,), -np.inf), ((4, 6), 0.5))), logit_bias(data=(((3,), 30.0),))),
    "bad_words": (
        bad_words(data=((8, 9, 10),)), bad_words(data=((2, 1), (3, 1), (4, 1), (5, 5, 5))),
        bad_words(data=((3,), (9000,), (0, 2)))),
    "allowed_ids": (
        allowed_ids(data=tuple(range(4000))), allowed_ids(data=tuple(range(0, 2000, 2))),
        allowed_ids(data=(0, 11, 3, 3))),
    "prefix_allowed": (prefix_allowed(data=seen), prefix_allowed(data=seen_lately)),
    "min_length": (
        min_length(10, data=(1, 7)), min_length(100, data=(1,)), min_length(100, data=(7, 1))),
    "min_new_tokens": (
        min_new_tokens(3, data=(1,)), min_new_tokens(7, data=(1,)),
        min_new_tokens(7, data=(1, 7))),
    "forced_first": (forced_first(data=(0,)), forced_first(data=(5,))),
    "forced_last": (
        forced_last(9, data=(0,)), forced_last(21, data=(0, 7)), forced_last(21, data=(0,))),
    "suppress": (suppress(data=(11,)), suppress(data=(2, 9000)), suppress(data=(1, 2, 3, 2000))),
    "begin_suppress": (begin_suppress(data=(11,)), begin_suppress(data=(1, 2, 3))),
    "custom": (custom(data=halved), custom(data=without_the_last)),
    "infill": (infill(data=WORDS), infill(data=Spelling((b"a", b"ab", b"abc", b"b"), (2,)))),
}
NEUTRAL = {
    "frequency_penalty": frequency_penalty(0),
    "presence_penalty": presence_penalty(0),
    "encoder_repetition_penalty": encoder_repetition_penalty(1),
    "no_repeat_ngram": no_repeat_ngram(0),
    "encoder_no_repeat_ngram": encoder_no_repeat_ngram(0),
    "dry": dry(0, data=((3,),)),
    "exponential_decay": exponential_decay(0, 1, data=(1, 7)),
    "logit_bias": logit_bias(),
    "bad_words": bad_words(),
    "min_length": min_length(0, data=(1,)),
    "min_new_tokens": min_new_tokens(0, data=(1,)),
    "forced_last": forced_last(0, data=(1,)),
    "suppress": suppress(),
    "begin_suppress": begin_suppress(),
    "custom": custom(data=same),
}
