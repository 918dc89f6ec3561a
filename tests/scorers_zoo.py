"""Branches that say given texts, on a vocabulary of bytes."""
from unspool.core.branch import Branch
from unspool.core.prefix import Candidate, prefix

PROMPT = (0, 0)


def piece(token):
    return bytes([token])


def branch(tokens, logprobs=None, states=None, ended=None):
    """A branch that has written `tokens`; `states[i]` is the state before token i."""
    settled, count = prefix(PROMPT), len(tokens)
    logprobs = [-1.0] * count if logprobs is None else logprobs
    states = [None] * count if states is None else states
    for token, logprob, state in zip(tokens, logprobs, states, strict=True):
        settled = settled.extend(token, Candidate(token, logprob, logprob, 1, 0.0, state=state))
    return Branch(0, settled, len(PROMPT), logprob=sum(logprobs), ended=ended)


def saying(*texts):
    return [branch(text.encode()) for text in texts]
