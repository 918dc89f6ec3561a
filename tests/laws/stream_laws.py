"""Laws of streaming: what is committed stays, and is what the request answers in the end."""
from __future__ import annotations

from collections import defaultdict

from runs import EVERY, STEPS, answers, filled
from subjects import Subject

from unspool.core.events import Commit, Provisional, Revoke
from unspool.engine.engine import Engine
from unspool.engine.runner import Runner
from unspool.memories import Dense


class Listener:
    """Keeps what a caller sees: of each choice the final tokens, and those that only lead."""

    def __init__(self) -> None:
        self.final: dict[int, list] = defaultdict(list)
        self.lead: dict[int, list] = defaultdict(list)

    def hear(self, event) -> None:
        match event:
            case Commit(choice, tokens):
                assert tokens, "a commit of nothing"
                shown = self.lead[choice][:len(tokens)]
                assert told(shown) == told(tokens[:len(shown)]), "another token became final"
                self.final[choice] += tokens
                del self.lead[choice][:len(tokens)]
            case Provisional(choice, tokens):
                assert tokens, "nothing is provisional"
                self.lead[choice] += tokens
            case Revoke(choice, count):
                assert 0 < count <= len(self.lead[choice]), "more is taken back than was shown"
                del self.lead[choice][-count:]

    def tokens(self, choice: int = 0) -> list[int]:
        return [fact.token for fact in self.final[choice]]


def told(facts) -> list:
    """Each token with its log-probabilities."""
    return [fact[:3] for fact in facts]


def alike(subject: Subject, facts, others) -> bool:
    """The same tokens, with log-probabilities as equal as the subject promises."""
    return len(facts) == len(others) and all(
        a.token == b.token and all(map(subject.equal, a[1:3], b[1:3]))
        for a, b in zip(facts, others, strict=True))


def streamed(subject: Subject, request):
    """(job, listener) after each step of a request that runs alone."""
    engine = Engine(subject.model(), Dense(subject.model().context))
    job = engine.add(filled(request, Runner(subject.other, Dense(1024))))
    listener = Listener()
    for _ in range(STEPS):
        if not engine.jobs:
            return
        for _, events in engine.step():
            for event in events:
                listener.hear(event)
        yield job, listener
    raise AssertionError(f"more than {STEPS} steps")


def commits_join(subject: Subject, name: str) -> None:
    """Joined commits are the final tokens, fact by fact; what is provisional is shown, taken back,
    or final; what is committed is part of every text that may still win."""
    for job, listener in streamed(subject, EVERY[name].request()):
        for branch in job.branches if job.live and job.competing else ():
            final = listener.final[0]
            assert alike(subject, branch.facts[:len(final)], final), "what is final may still lose"
    assert job.error is None and not any(listener.lead.values()), "something stays provisional"
    found = [listener.final[i] for i in sorted(listener.final) if listener.final[i]]
    assert [[fact.token for fact in one] for one in found] == [a[0] for a in answers(job)]
    facts = [branch.facts for branch, _ in job.strategy.ranked(job)]
    assert all(alike(subject, *pair) for pair in zip(found, facts, strict=True))


def searches_show_what_leads(subject: Subject) -> None:
    """While texts compete, what is shown is one living text, whole."""
    for name in ("beam", "best of", "contrastive", "samples >> beam", "beam >> mbr", "tree"):
        seen = 0
        for job, listener in streamed(subject, EVERY[name].request()):
            if job.live and job.competing:
                shown = told(listener.final[0] + listener.lead[0])
                texts = [told(branch.facts) for branch in job.live]
                assert shown in texts, f"{name}: what is shown is no living text"
                seen += bool(listener.lead[0])
        assert seen, f"{name}: nothing was provisional"


def one_text_streams_as_it_grows(subject: Subject) -> None:
    """A stage that writes one text commits each token at once, whatever comes after it."""
    for name in ("sample to text >> beam", "greedy, sure >> sample"):
        for job, listener in streamed(subject, EVERY[name].request()):
            if job.live and not job.competing:
                assert listener.tokens() == job.live[0].tokens, f"{name}: a token is held back"


def nothing_is_committed_that_may_be_dropped(subject: Subject) -> None:
    """Several texts that the next stage chooses among: only what all of them have is final."""
    for name in ("samples >> beam", "samples >> sample", "samples to regex >> tree"):
        held = 0
        for job, listener in streamed(subject, EVERY[name].request()):
            if job.stage == 0 and len(job.branches) > 1:
                assert set(listener.final) <= {0}, f"{name}: another choice is committed"
                texts = [branch.tokens for branch in job.branches]
                assert all(t[:len(listener.tokens())] == listener.tokens() for t in texts)
                held += len({tuple(t) for t in texts}) > 1
        assert held, f"{name}: the texts are all equal"


STREAMING = (searches_show_what_leads, one_text_streams_as_it_grows,
             nothing_is_committed_that_may_be_dropped)
