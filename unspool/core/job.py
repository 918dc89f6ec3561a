"""A job: a request being answered. `apply` is the one place where a branch changes.

It settles tokens, cuts a draft at the first stop, adds log-probabilities, folds the states of
rules and stops, writes the trace and counts. So streams, stops, scores and usage exist once.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from operator import index
from typing import Any

from unspool.core.branch import Branch, Ended
from unspool.core.edits import EDITS, Draft, Drop, Edit, Extend, Fork, Replace, natural
from unspool.core.errors import ParameterError
from unspool.core.events import Event
from unspool.core.history import History, history
from unspool.core.prefix import Candidate, Prefix, prefix
from unspool.core.records import Record, Usage
from unspool.core.request import Request
from unspool.core.shown import Shown
from unspool.core.slot import Slot
from unspool.core.sockets import Slots, Strategy
from unspool.core.stage import REACHED, InForce, Stage, step_of, weight
from unspool.core.values import shown

MOST_EDITS = 2**20  # in one step; a strategy that yields without end must not fill the memory
PATIENCE = 4096  # steps in which no text gets longer than any was


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
    stage: int = 0
    stages: tuple[Stage, ...] = ()
    forces: list[InForce] = field(default_factory=list)  # of each stage
    kept: dict[str, Any] = field(default_factory=dict)  # by the strategy of the stage, of all texts

    def __post_init__(self) -> None:
        request = self.request
        self.stages = request.stages
        self.forces = [InForce(stage, request.rules, request.mixes) for stage in self.stages]
        root = Branch(0, prefix(request.prompt), len(request.prompt))
        root.voices = self.voices(request.prompt)
        root.states = tuple(rule.start(request.prompt) for rule in request.rules)
        root.history = self.remembered(request.prompt)
        root.watch = tuple(stop.start() for stop in request.stops)
        self.branches.append(root)
        self.usage.prompt = len(request.prompt)
        self.apply(request.strategy.open(self))

    def remembered(self, prompt: Sequence[int]) -> History | None:
        """The text as the rules look at it, if one does."""
        return history(prompt) if any(rule.recalls for rule in self.request.rules) else None

    def voices(self, prompt: Sequence[int]) -> tuple[Prefix, ...]:
        """The text as each other reader sees it, before the first written token."""
        return tuple(prefix(prompt if voice.prompt is None else voice.prompt)
                     for voice in self.request.voices)

    @property
    def strategy(self) -> Strategy:
        """The one of the stage that the request is in."""
        return self.stages[self.stage].strategy

    @property
    def competing(self) -> bool:
        """Texts compete, so that a token may still be taken back."""
        last = self.stage + 1 == len(self.stages)
        return self.strategy.searching or (not last and len(self.branches) > 1)

    def force(self, branch: Branch) -> InForce:
        return self.forces[branch.stage]

    @property
    def live(self) -> list[Branch]:
        return [b for b in self.branches if b.ended is None]

    @property
    def ready(self) -> bool:
        """Every live branch has its slots, so the strategy may decide."""
        return all(b in self.slots for b in self.live)

    def decide(self) -> None:
        """Let the strategy answer the slots, and apply what it says. Slots of branches that it left
        alone stay; when all texts of a stage have ended, the next stage begins."""
        slots, self.slots = self.gated(self.slots), {}
        edits = self.apply(self.strategy.decide(self, slots) if self.live else ())
        touched = {edit.branch for edit in edits if not isinstance(edit, Fork)}
        mine = set(self.live)
        self.slots = {b: s for b, s in slots.items() if b in mine and b not in touched}
        self.hand_over()
        self.expect_progress()

    def gated(self, slots: Slots) -> Slots:
        """Where the next token is so uncertain that the stage ends, it ends. Slots of a draft
        behind such a place do not count."""
        most = self.stages[self.stage].entropy_above
        if most is None:
            return slots
        out = dict(slots)
        for branch in self.live:
            out[branch] = list(takewhile(lambda slot: slot.entropy <= most, slots[branch]))
            if not out[branch]:
                self.void(branch)
                branch.ended = Ended(REACHED, "entropy_above")
                self.note("end", branch)
        return out

    def hand_over(self) -> None:
        """When all texts of a stage have ended, the next one takes over the best, numbered by rank.
        One that has really ended stays as it is."""
        while not self.live and self.branches and self.stage + 1 < len(self.stages):
            stage = self.stage + 1
            taken = self.stages[stage].takes
            best = [branch for branch, _ in self.strategy.ranked(self)][:taken]
            why = f"rank below {taken} at the end of stage {stage}"
            edits: list[Edit] = [Fork(b, choice=i, stage=stage) for i, b in enumerate(best)]
            edits += [Drop(b, f"goes on in stage {stage + 1}" if b in best else why)
                      for b in self.branches]
            self.apply(edits)
            self.stage, self.kept = stage, {}
            self.apply(self.strategy.open(self))

    def expect_progress(self) -> None:
        """No stop ends a text that never grows; so a strategy that only turns round is an error."""
        longest = max([b.settled.length for b in self.branches], default=0)
        self.idle = 0 if longest > self.longest else self.idle + 1
        self.longest = max(longest, self.longest)
        if self.idle > PATIENCE and self.live:
            raise ParameterError(f"strategy={shown(self.strategy)}: in {PATIENCE} steps no text "
                                 "grew; let it extend a branch, or end it with Drop", "strategy")

    def apply(self, edits: Iterable[Edit]) -> list[Edit]:
        """Apply edits that were decided on one snapshot, and give them back.

        Raises ParameterError for too many edits, and for what is no edit of this job's branches.
        """
        found = self.checked(edits)
        for edit in found:
            match edit:
                case Drop(branch, reason):
                    self.void(branch)
                    self.branches.remove(branch)
                    self.note("drop", branch, reason=reason)
                case Replace(branch, tokens, written):
                    self.put(branch, tokens, written)
                case Fork(stage=int()):
                    self.fork(edit)
                case _ if edit.branch.ended is not None:
                    pass  # a stop earlier in this step cuts the rest
                case Extend(branch, candidate, kept):
                    branch.kept = branch.kept if kept is None else kept
                    self.settle(branch, candidate)
                    self.note("extend", branch, candidate=candidate)
                case Fork():
                    self.fork(edit)
                case Draft(branch, tokens, parents, tail):
                    self.void(branch)
                    self.draft(branch, tokens, parents, tail)
        self.step += 1
        return found

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
        token = natural(candidate.token)
        if branch.states:
            branch.states = self.force(branch).after(branch.states, step_of(branch), candidate)
        branch.settled = branch.settled.extend(token, candidate)
        branch.logprob += candidate.logprob
        branch.score += candidate.processed
        if branch.voices:
            branch.voices = tuple([voice.extend(token) for voice in branch.voices])
        if branch.history is not None:
            branch.history = branch.history.extend(token)
        seen = [stop.after(state, branch)
                for stop, state in zip(request.stops, branch.watch, strict=True)]
        branch.watch = tuple([state for state, _ in seen])
        verdicts = [ended for _, ended in seen if ended is not None]
        return min(verdicts, key=weight) if verdicts else None

    def fork(self, edit: Fork) -> None:
        self.born += 1
        branch, candidate = edit.branch, edit.candidate
        child = self.child(branch, self.born)
        if edit.choice is not None:
            child.choice = natural(edit.choice)
        child.kept = branch.kept if edit.kept is None else edit.kept
        if edit.stage is not None:
            self.enter(child, edit.stage)
            child.ended = None if branch.ended is None or branch.ended.reason == REACHED else (
                branch.ended)
        self.branches.append(child)
        if candidate is not None:
            child.ended = self.look(child, candidate)
        if edit.draft and child.ended is None:
            self.draft(child, edit.draft, None, "causal")
        self.note("fork", child, branch.number, candidate)

    def enter(self, branch: Branch, stage: int) -> None:
        """The branch begins a stage."""
        old, branch.stage = self.force(branch), stage
        branch.since, branch.kept = branch.written, None
        branch.states = self.force(branch).enter(branch.states, old, branch.settled.tokens())

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
        branch.voices = self.voices(tokens)
        branch.since = min(branch.since, len(written))
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
