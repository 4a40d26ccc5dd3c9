"""What a tool may know about the call it serves, and how it reports progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from toolgate.core.records import dataclass, field

if TYPE_CHECKING:
    from toolgate.core.caller import Caller


def _ignore(fraction: float, message: str) -> None:
    return None


def _keep(part: Any) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Context:
    """Handed to a tool that has a parameter annotated `Context`; never part of its schema."""

    call_id: str
    persona: str
    tool: str
    conversation: str = ""
    reason: str = ""
    """Why the caller says it makes the call."""
    progress: Callable[[float, str], None] = field(default=_ignore)
    part: Callable[[Any], None] = field(default=_keep, repr=False)
    """Hands over a part of the result while the rest is being found, if anybody listens."""
    hidden: tuple[str, ...] = field(default=(), repr=False)
    """The call's own secrets: whatever a tool has recorded beside its result must not repeat them."""
    caller: Caller | None = field(default=None, repr=False)
    """Whoever can be asked back while the call runs; a tool that makes a call of its own passes it on."""

    key: str = field(default="", repr=False)
    """The caller's idempotency key: a tool that begins something of its own finds it again by it."""

    @property
    def heard(self) -> bool:
        """Whether anybody listens for parts."""
        return self.part is not _keep


@dataclass(slots=True, kw_only=True)
class Trail:
    """The ids that tie a call to what it is part of, and why it was made. Recorded, never trusted."""

    conversation: str = ""
    transaction: str = ""
    action: str = ""
    plan: str = ""
    step: str = ""
    reason: str = ""
    run: str = ""
    """The run of an agent, with all its helpers: repeats are counted there."""
    same: str = ""
    """Set by the gate for a call of a run: a hash of tool and arguments, whoever makes the call."""

    def words(self) -> dict[str, str]:
        """What the journal's body keeps; the conversation has a column of its own."""
        if not (self.reason or self.transaction or self.action or self.plan or self.step or self.run):
            return {}
        pairs = (
            ("transaction", self.transaction),
            ("action", self.action),
            ("plan", self.plan),
            ("step", self.step),
            ("rationale", self.reason),
            ("run", self.run),
            ("same", self.same),
        )
        return {name: value for name, value in pairs if value}


NO_TRAIL = Trail()
"""For a call that says nothing about what it is part of."""
