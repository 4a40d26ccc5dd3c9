"""A unit of work: what it needs to see, what it decides, what it wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from toolgate.ledger.state import State
from toolgate.storage.port import Row, Submission

if TYPE_CHECKING:
    from toolgate.core.event import Event
    from toolgate.ledger.attachments import Shortened
    from toolgate.storage.schema import Attachment

T = TypeVar("T")
Refs = Callable[[State, int], Iterable[str]]


def all_questions(state: State, now: int) -> Iterable[str]:
    return state.unread


def no_question(state: State, now: int) -> Iterable[str]:
    """For whoever needs to know which questions there are, and nothing more of them."""
    return ()


class View:
    """What a Work sees: the state at this very moment, and a place for the events it decides on."""

    __slots__ = ("claims", "events", "made", "now", "state")

    def __init__(self, state: State, now: int, claims: Mapping[str, tuple[Any, ...]]) -> None:
        self.state = state
        self.now = now
        self.claims = claims
        self.events: list[Event] = []
        self.made: tuple[Event, Shortened] | None = None
        """A long event whose row was made before, where nobody waits for it."""

    def emit(self, event: Event, made: Shortened | None = None) -> None:
        self.events.append(event)
        if made is not None:
            self.made = event, made

    def texts(self, ready: tuple[Event, Shortened]) -> list[str | Shortened]:
        """What is made of each, where one is there already."""
        known, made = ready
        return [made if event is known else event.text() for event in self.events]


class Work(Submission, Generic[T]):
    """A decision that is made and recorded in one transaction."""

    scopes: tuple[str, ...] = ()
    """Idempotency claims it needs to see."""
    rows: list[Row]
    """What it wrote, once it is committed."""
    heavy = False
    """Whether it writes so much that the event loop should not wait for it."""
    _refs: Refs | None = None
    attached: Sequence[Attachment] = ()
    """The whole bodies of those rows that hold only their beginning."""

    def __init__(
        self, decide: Callable[[View], T] | None = None, *, durable: bool = True, refs: Refs | None = None
    ) -> None:
        self._decide = decide
        self.durable = durable
        self.rows = []
        self._refs = refs

    @property
    def looks_at_questions(self) -> bool:
        """Whether it needs to know which questions there are, or does something to one."""
        return self._refs is not None

    def refs(self, state: State, now: int) -> Iterable[str]:
        """The questions whose rows it needs to see; of others it sees only what their table says."""
        return self._refs(state, now) if self._refs is not None else ()

    def decide(self, view: View) -> T:
        if self._decide is None:
            raise TypeError("a Work needs a decision")
        return self._decide(view)
