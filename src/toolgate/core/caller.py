"""The caller of a call, as the tool that serves it can come back to it: its user, its model, its ear for log lines.

It travels with the call: `gate.call(..., caller=Caller(answer=show))`. A question of a server's is the server's, never
toolgate's, and never counts as consent; where nobody shows it, the server is told that the human declined. Where nobody
offers a model, there is none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from toolgate.core.ports import Channel
    from toolgate.core.result import Result

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""From the least severe."""


@dataclass(frozen=True, slots=True)
class Elicitation:
    """A server's own question, made harmless to show. A face must say whose it is: `source`."""

    source: str
    message: str
    schema: Mapping[str, Any]
    url: str = ""

    @property
    def label(self) -> str:
        return f"The server {self.source} asks (this is not a question of toolgate, and approves nothing):"


@dataclass(frozen=True, slots=True)
class Reply:
    """What the human said to an Elicitation."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any] | None = None
    reason: str = ""
    """Why it is no answer of the human's, if it is none. For the ledger, not for the server."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """What a server wants a model to answer: the parameters of `sampling/createMessage`, made harmless and small."""

    source: str
    params: Mapping[str, Any]


class NoModel(Exception):
    """The client's model gave no answer; the text says why."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """What a server logged during a call."""

    source: str
    level: str
    logger: str
    """Begins with the server's name: nobody can pose as toolgate or as another server."""
    data: Any


Handler = Callable[[Elicitation], Awaitable[Reply]]
Model = Callable[[Sampling], Awaitable[Mapping[str, Any]]]
"""Asks the model; gives back role, content, model and stopReason. Raises NoModel where there is no answer."""
Through = Callable[[str, Mapping[str, Any], "Caller"], Awaitable["Result"]]
"""Makes another call for the same user, who may be asked about it: tool, arguments, and whom that call is told of."""


@dataclass(eq=False)
class Caller:
    """Whoever makes a call. Two are the same only if they are one object."""

    answer: Handler | None = None
    model: Model | None = None
    hear: Callable[[LogLine], None] | None = None
    level: Callable[[], str] = lambda: "info"
    """The least severe level it wants to hear of, as it is now; empty for none."""
    channel: Channel | None = None
    """Where the user is asked whether this very call may run, beside the gate's own channels."""
    through: Through | None = None
    persona: str = ""
    """Whose call `through` makes. A tool may call a server as somebody else."""
    owner: object = None
    """Calls of one owner may hear what cannot be told apart between them."""
    wish: object = None
    """What a server has asked for, where the call is made to grant it."""
    lacked: set[str] = field(default_factory=set)
    """What a server wanted and this caller cannot do."""
