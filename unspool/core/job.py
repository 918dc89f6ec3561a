"""A job: a request being answered. `apply` is the one place where a branch changes.

It settles tokens, cuts a draft at the first stop, adds log-probabilities, folds the states of
rules and stops, writes the trace and counts. So streams, stops, scores and usage exist once.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from operator import index
from typing import Any, NamedTuple

from unspool.core.branch import Branch, Ended
from unspool.core.edits import EDITS, Draft, Drop, Edit, Extend, Fork, Replace
from unspool.core.errors import ParameterError
from unspool.core.events import Event
from unspool.core.history import History, history
from unspool.core.prefix import Candidate, prefix
from unspool.core.request import Request
from unspool.core.shown import Shown
from unspool.core.slot import Slot
from unspool.core.sockets import Strategy
from unspool.core.values import shown

MOST_EDITS = 2**20  # in one step; a strategy that yields without end must not fill the memory
PATIENCE = 4096  # steps in which no text gets longer than any was


class Record(NamedTuple):
    """One line of the trace: at `step`, `edit` was applied to `branch` (made from `parent`)."""

    step: int
    edit: str
    branch: int
    parent: int | None = None
    token: int | None = None
    logprob: float | None = None
    processed: float | None = None
    reason: str | None = None


@dataclass(slots=True)
class Usage:
    """Counts of one job, in tokens unless said. `cached`: prompt tokens that memory knew;
    `computed`: tokens that went through the model; `forwards`: passes it took part in."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    computed: int = 0
    forwards: int = 0
    drafted: int = 0
    accepted: int = 0
    rejected: int = 0
    preempted: int = 0
    evicted: int = 0

    def json(self) -> dict[str, int]:
        return asdict(self)


@dataclass(slots=True, eq=False)
class Job:
    """A request, its branches, and what became of them."""

    request: Request
    branches: list[Branch] = field(default_factory=list)
    slots: dict[Branch, Sequence[Slot]] = field(default_factory=dict)
    trace: list[Record] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    step: int = 0
    held: bool = False  # the strategy may not decide yet
    paused: bool = False  # and its caller was told so
    error: Exception | None = None
    shown: Shown = field(default_factory=Shown)
    born: int = 0
    longest: int = 0  # of all texts so far, in tokens
    idle: int = 0  # steps since it grew

    def __post_init__(self) -> None:
        request = self.request
        root = Branch(0, prefix(request.prompt), len(request.prompt))
        root.states = tuple(rule.start(request.prompt) for rule in request.rules)
        root.history = self.remembered(request.prompt)
        root.watch = tuple(stop.start() for stop in request.stops)
        self.branches.append(root)
        self.usage.prompt = len(request.prompt)
        self.apply(request.strategy.open(self))

    def remembered(self, prompt: Sequence[int]) -> History | None:
        """The text as the rules look at it, if one does."""
        return history(prompt) if any(rule.recalls for rule in self.request.rules) else None

    @property
    def strategy(self) -> Strategy:
        return self.request.strategy

    @property
    def live(self) -> list[Branch]:
        return [b for b in self.branches if b.ended is None]

    @property
    def ready(self) -> bool:
        """Every live branch has its slots, so the strategy may decide."""
        return all(b in self.slots for b in self.live)

    def decide(self) -> None:
        """Let the strategy answer the slots, and apply what it says."""
        slots, self.slots = self.slots, {}
        self.apply(self.strategy.decide(self, slots))
        self.expect_progress()

    def expect_progress(self) -> None:
        """No stop ends a text that never grows; so a strategy that only turns round is an error."""
        longest = max([b.settled.length for b in self.branches], default=0)
        self.idle = 0 if longest > self.longest else self.idle + 1
        self.longest = max(longest, self.longest)
        if self.idle > PATIENCE and self.live:
            raise ParameterError(f"strategy={shown(self.strategy)}: in {PATIENCE} steps no text "
                                 "grew; let it extend a branch, or end it with Drop", "strategy")

    def apply(self, edits: Iterable[Edit]) -> None:
        """Apply edits that were decided on one snapshot.

        Raises ParameterError for too many edits, and for what is no edit of this job's branches.
        """
        for edit in self.checked(edits):
            match edit:
                case Drop(branch, reason):
                    self.void(branch)
                    self.branches.remove(branch)
                    self.note("drop", branch, reason=reason)
                case Replace(branch, tokens, written):
                    self.put(branch, tokens, written)
                case _ if edit.branch.ended is not None:
                    pass  # a stop earlier in this step cuts the rest
                case Extend(branch, candidate):
                    self.settle(branch, candidate)
                    self.note("extend", branch, candidate=candidate)
                case Fork(branch, candidate, choice):
                    self.fork(branch, candidate, choice)
                case Draft(branch, tokens, parents, tail):
                    self.void(branch)
                    self.draft(branch, tokens, parents, tail)
        self.step += 1

    def checked(self, edits: Iterable[Edit]) -> list[Edit]:
        found = list(islice(edits, MOST_EDITS + 1))
        if len(found) > MOST_EDITS:
            raise ParameterError(f"strategy={shown(self.strategy)}: more than {MOST_EDITS} edits "
                                 "in one step; answer each slot once", "strategy")
        mine = set(self.branches)
        for edit in found:
            if not isinstance(edit, EDITS) or edit.branch not in mine:
                raise ParameterError(f"strategy={shown(self.strategy)}: {shown(edit)} is no edit "
                                     "of a branch of this request; edit job.branches", "strategy")
        return found

    def events(self) -> list[Event]:
        return self.shown.update(self)

    def ends(self, branch: Branch, candidate: Candidate) -> Ended | None:
        """Why the branch would end if this token were written; the branch itself is untouched."""
        return self.look(self.child(branch, branch.number), candidate)

    def end(self, ended: Ended) -> None:
        """End every live branch: cancelled, or an error."""
        for branch in self.live:
            self.void(branch)
            branch.ended = ended
            self.note("end", branch, reason=ended.reason)
        self.slots = {}

    # ── what the edits do ────────────────────────────────────────────────────────────────────────
    def settle(self, branch: Branch, candidate: Candidate) -> None:
        draft = branch.draft
        if draft and draft[0] == candidate.token:
            self.usage.accepted += 1
            branch.draft, branch.parents = draft[1:], tuple(p - 1 for p in branch.parents[1:])
        else:
            self.void(branch)
        branch.ended = self.look(branch, candidate)
        if branch.ended is not None:
            self.void(branch)

    def look(self, branch: Branch, candidate: Candidate) -> Ended | None:
        """Write the token and fold it into sums and states; say why the branch ends, if it does."""
        request = self.request
        natural(candidate.token)
        branch.settled = branch.settled.extend(candidate.token, candidate)
        branch.logprob += candidate.logprob
        branch.score += candidate.processed
        branch.states = tuple([
            rule.after(state, candidate.token, candidate)
            for rule, state in zip(request.rules, branch.states, strict=True)])
        if branch.history is not None:
            branch.history = branch.history.extend(candidate.token)
        seen = [stop.after(state, branch)
                for stop, state in zip(request.stops, branch.watch, strict=True)]
        branch.watch = tuple([state for state, _ in seen])
        verdicts = [ended for _, ended in seen if ended is not None]
        return min(verdicts, key=lambda e: e.reason == "length") if verdicts else None

    def fork(self, branch: Branch, candidate: Candidate | None, choice: int | None) -> None:
        self.born += 1
        child = self.child(branch, self.born)
        if choice is not None:
            child.choice = natural(choice)
        self.branches.append(child)
        if candidate is not None:
            child.ended = self.look(child, candidate)
        self.note("fork", child, branch.number, candidate)

    def child(self, branch: Branch, number: int) -> Branch:
        return replace(branch, number=number, draft=(), parents=(), ended=None)

    def void(self, branch: Branch) -> None:
        """Whatever is left of the draft was not taken."""
        self.usage.rejected += len(branch.draft)
        branch.draft, branch.parents = (), ()

    def draft(self, branch: Branch, tokens: tuple[int, ...], parents: tuple[int, ...] | None,
              tail: str) -> None:
        chain = range(-1, len(tokens) - 1)
        parents = tuple(map(index, chain if parents is None else parents))
        branch.draft, branch.parents, branch.tail = tuple(map(natural, tokens)), parents, tail
        self.usage.drafted += len(tokens)

    def put(self, branch: Branch, tokens: tuple[int, ...], written: tuple[Candidate, ...]) -> None:
        """Another text under the branch: its sums and states are folded afresh."""
        request = self.request
        self.void(branch)
        branch.settled, branch.prompt = prefix(map(natural, tokens)), len(tokens)
        branch.replaced += 1
        branch.logprob = branch.score = 0.0
        branch.ended = None
        branch.states = tuple(rule.start(tokens) for rule in request.rules)
        branch.history = self.remembered(tokens)
        branch.watch = tuple(stop.start() for stop in request.stops)
        for candidate in written:
            if branch.ended is None:  # a stop cuts the rest, here too
                branch.ended = self.look(branch, candidate)
        self.note("replace", branch)

    def note(self, edit: str, branch: Branch, parent: int | None = None,
             candidate: Candidate | None = None, reason: str | None = None) -> None:
        if branch.ended is not None and reason is None:
            reason = branch.ended.reason
        token, raw, processed = (None, None, None) if candidate is None else candidate[:3]
        self.trace.append(
            Record(self.step, edit, branch.number, parent, token, raw, processed, reason))


def natural(token: Any) -> int:
    """The number, if it can be an id or a choice: others would be read as what they are not."""
    number = index(token)
    if number < 0:
        raise ParameterError(f"token {token}: ids run from 0 on", "strategy")
    return number
