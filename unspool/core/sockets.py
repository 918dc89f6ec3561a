"""The sockets: what a strategy, rule, stop, drafter, memory or model must offer. One screen."""
from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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


@dataclass(frozen=True, slots=True)
class Voice:
    """Another reader of a request's texts. `prompt`: ids that stand before what is written, in
    place of the request's own (None: its own). `model`: another model with the same vocabulary, as
    the engine's runner of it (None: the request's own); opaque here."""

    prompt: tuple[int, ...] | None = None
    model: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Heard:
    """What the readers say of the S open slots of one text: logits [S, V] each, in float64.

    `own`: the row as the mixes before left it, at first the model's own. `others`: of the mix's
    voices, in their order. `inner`: of inner layers of the model, by layer. `texts`: for each slot
    the tokens before it, the prompt included, where the mix reads text.
    """

    own: Any
    others: Sequence[Any] = ()
    inner: Mapping[int, Any] = field(default_factory=dict)
    texts: Sequence[Sequence[int]] = ()


class Mix(Protocol):
    """Joins what several readers say into one row of logits, before any rule. A value: frozen, with
    numbers as fields, each a number or a Schedule. A row depends on that row's readers alone."""

    @property
    def voices(self) -> tuple[Voice, ...]: ...
    @property
    def layers(self) -> tuple[int, ...]:
        """Inner layers that it wants: 0 is the embeddings, j what j layers made of them."""
        ...
    @property
    def reads_text(self) -> bool: ...
    def blend(self, heard: Heard) -> Any:
        """[S, V]: logits, -inf for tokens that it removes; never all of a row."""
        ...


class Reward(Protocol):
    """A number for each text, the higher the better."""

    def rewards(self, branches: Sequence[Branch]) -> Sequence[float]: ...


class Utility(Protocol):
    """How good each text is if another one were the truth. `states`: it compares hidden states,
    which the strategy's reading then asks for (`Candidate.state`)."""

    @property
    def states(self) -> bool: ...
    def table(self, branches: Sequence[Branch]) -> Sequence[Sequence[float]]:
        """[hypothesis][reference]"""
        ...


class Extractor(Protocol):
    """The answer that a text gives, as something that can be counted; None: it gives none."""

    def answers(self, branches: Sequence[Branch]) -> Sequence[Hashable | None]: ...
    def spans(self, branches: Sequence[Branch]) -> Sequence[tuple[int, int] | None]:
        """Where it stands: the first byte of the written text, and the one behind the last."""
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
    planes: str = ""  # what the store keeps besides, see `Reading.planes`


class Store(Protocol):
    """Keys and values of one text, in the layout of the model that makes it and writes it."""

    taken: int  # bytes that it has taken for itself, in all, since it was made

    @property
    def nbytes(self) -> int:
        """What it takes, room that is not used yet included. Of what several stores hold together
        each counts its share, so that all stores together are what is held."""
        ...
    def share(self, length: int) -> Store:
        """A store of another text that begins with the first `length` tokens. It copies nothing:
        whichever writes first into what both hold makes that part its own."""
        ...
    def free(self) -> None:
        """Give everything back. Twice is once."""
        ...
    def put_states(self, start: int, rows: Any) -> None:
        """Keep the last hidden states [tokens, width] of the tokens from `start` on, just written.
        """
        ...
    def states(self, upto: int) -> Any:
        """[upto, width]: those of the first tokens."""
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

    The last `rows` of them each want a row of logits (0: only remember them). `hidden`: the last
    hidden state of each token is kept with the text. `layers`: inner layers whose logits the rows
    want.
    """

    lease: Lease
    tokens: list[int]
    start: int
    rows: int
    hidden: bool = False
    layers: tuple[int, ...] = ()


class Scores(Protocol):
    """A forward that was launched; `rows` waits for it."""

    def rows(self) -> Any:
        """[sum of the spans' rows, vocabulary]: numpy on the CPU, a torch tensor elsewhere."""
        ...


class Planes(Scores, Protocol):
    """What spans asked for besides. Copies, which outlive the forward."""

    def hidden(self, span: int) -> Any:
        """[rows, width]: the last hidden states of the rows of a span that asked for them."""
        ...
    def similarity(self, span: int) -> Sequence[float]:
        """For each row of such a span the largest cosine of its state with those of all tokens
        before; -1.0 for the first token."""
        ...
    def inner(self, span: int, layer: int) -> Any:
        """[rows, vocabulary]: logits of an inner layer, for a span that asked for it."""
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
    layers: int  # 0: inner layers cannot be read
    width: int  # of a hidden state; 0: they cannot be read
    tied: bool  # the head is the embeddings

    def score(self, spans: Sequence[Span]) -> Scores: ...
    def close(self) -> None: ...
