"""The sockets: what a strategy, rule, stop, drafter, memory or model must offer. One screen."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from unspool.core.branch import Branch, Ended
from unspool.core.edits import Edit
from unspool.core.prefix import Candidate, Prefix
from unspool.core.slot import Reading, Slot

if TYPE_CHECKING:
    from unspool.core.job import Job

Slots = Mapping[Branch, Sequence[Slot]]


class Strategy(Protocol):
    """Slots in, edits out. Its state is in the branches, so a job can be saved and resumed."""

    @property
    def reads(self) -> Reading: ...
    def open(self, job: Job) -> Iterable[Edit]: ...
    def decide(self, job: Job, slots: Slots) -> Iterable[Edit]: ...
    def ranked(self, job: Job) -> list[tuple[Branch, float]]:
        """The answers so far with the score each is ranked by; searches put the best first."""
        ...
    @property
    def searching(self) -> bool:
        """True when branches compete for one answer, so that a token may still be taken back."""
        ...


class Rule(Protocol):
    """Shapes rows of logits. What it remembers of a branch is a fold over the tokens."""

    @property
    def name(self) -> str: ...
    @property
    def recalls(self) -> bool:
        """Whether it looks at the text so far, `Branch.history`."""
        ...
    def start(self, prompt: Sequence[int]) -> object: ...
    def after(self, state: object, token: int, fact: Candidate) -> object: ...


class Stop(Protocol):
    """When to end, as a fold over the written tokens. `text_bytes` is what it may hold back."""

    def start(self) -> object: ...
    def after(self, state: object, branch: Branch) -> tuple[object, Ended | None]:
        """The state after the branch's last token, and why to end there, if so."""
        ...


class Constraint(Protocol):
    """Which tokens may come next, as a fold over the written ones. It is part of a rule's value, so
    it can be hashed. A token that was not allowed leads to a state in which none is."""

    def start(self) -> Any: ...
    def after(self, state: Any, token: int) -> Any: ...
    def allowed(self, state: Any) -> Any:
        """Ids, an int64 array [K], ascending. The same object for the same state: compiled code
        reads it by its address as long as the constraint lives."""
        ...
    def complete(self, state: Any) -> bool:
        """The text may end here: end tokens are among the allowed, if there are any."""
        ...
    def done(self, state: Any) -> bool:
        """It must: nothing may follow but an end token."""
        ...


class Drafter(Protocol):
    """Guesses the next tokens of a branch. A wrong guess costs time and never changes the text."""

    def guess(self, branch: Branch) -> Sequence[int]: ...


@dataclass(frozen=True, slots=True)
class Reader:
    """All that keys and values depend on besides the tokens."""

    model: str  # fingerprint of weights and config
    numerics: str
    salt: str = ""


class Store(Protocol):
    """Keys and values of one text, in the layout of the model that makes it and writes it."""

    @property
    def nbytes(self) -> int:
        """What it takes, room that is not used yet included."""
        ...
    def copy(self, length: int) -> Store:
        """A store of its own that holds the first `length` tokens."""
        ...


class Lease(Protocol):
    """One branch's hold on what a memory knows: `length` tokens of its prefix are in `store`.

    What the store holds beyond them may be of another text: the model writes over it.
    """

    length: int
    reserve: int  # tokens to make room for at once; 0: grow as needed
    store: Any  # a Store; None until the model that reads the span makes one


class Memory(Protocol):
    """What a model remembers of prefixes. It is asked, and told only who lives."""

    exact: bool  # it changes no bit of any answer
    keeps: bool  # False: nothing outlives a forward, so a text is always read whole

    def known(self, reader: Reader, prefix: Prefix) -> Lease:
        """Lease the longest known part of `prefix`, its last token excepted (it is read afresh)."""
        ...
    def settle(self, lease: Any, prefix: Prefix | None) -> None:
        """End a lease. `prefix`: the tokens whose keys it now holds; None: trust nothing of it."""
        ...
    def clear(self) -> None:
        """Forget everything and free it."""
        ...


@dataclass(slots=True)
class Span:
    """The tokens of one branch that one forward computes: `tokens` at positions `start`, ...

    The last `rows` of them each want a row of logits (0: only remember them).
    """

    lease: Lease
    tokens: list[int]
    start: int
    rows: int


class Scores(Protocol):
    """A forward that was launched; `rows` waits for it."""

    def rows(self) -> Any:
        """[sum of the spans' rows, vocabulary]: numpy on the CPU, a torch tensor elsewhere."""
        ...


class Model(Protocol):
    """Reads tokens, gives a row of logits per wanted token. Pure but for the leases it fills."""

    vocab: int  # ids 0..vocab-1 may be read and written
    context: int  # most tokens that a text may have
    fingerprint: str
    numerics: str
    device: str
    notes: tuple[str, ...]  # every fallback, in words
    remembers: bool  # False: every forward needs the whole prefix (the memory must be `none`)

    def score(self, spans: Sequence[Span]) -> Scores: ...
    def close(self) -> None: ...
