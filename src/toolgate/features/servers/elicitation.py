"""What a server may want of whoever makes a call, and how a caller says what it can do.

`with answering(show): await gate.call(...)`. A question is the server's, never toolgate's, and never counts as consent;
where nobody shows it, the server is told that the human declined. Where nobody offers a model, there is none.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

from toolgate.core.context import Context
from toolgate.core.event import Elicited
from toolgate.core.result import Result
from toolgate.features.servers.logs import LogLine
from toolgate.features.servers.results import Scrub, cleaned

WORDS, FIELDS, FIELD = 500, 20, 80
"""Characters of a question, names of a form and characters of each that the ledger keeps."""
LONGEST = 20_000
"""Characters of a question, and of its form. Nobody reads more, and looking for secrets in it would hold everybody up."""


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


Handler = Callable[[Elicitation], Awaitable[Reply]]
Model = Callable[[Sampling], Awaitable[Mapping[str, Any]]]
"""Asks the model; gives back role, content, model and stopReason. Raises NoModel where there is no answer."""
Through = Callable[[str, Mapping[str, Any]], Awaitable[Result]]
"""Makes another call for the same caller, who may be asked about it."""


@dataclass(eq=False)
class Caller:
    """Whoever makes a call, as far as the server that serves it can come back to them."""

    answer: Handler | None = None
    model: Model | None = None
    hear: Callable[[LogLine], None] | None = None
    level: Callable[[], str] = str
    """The least severe level it wants to hear of, as it is now; empty for none."""
    through: Through | None = None
    persona: str = ""
    """Whose call `through` makes. A tool may call a server as somebody else."""
    owner: object = None
    """Calls of one owner may hear what cannot be told apart between them."""
    lacked: set[str] = field(default_factory=set)
    """What a server wanted and this caller cannot do."""


_caller: ContextVar[Caller | None] = ContextVar("caller", default=None)


@contextmanager
def answering(
    handler: Handler | None = None, *, model: Model | None = None,
    hear: Callable[[LogLine], None] | None = None, level: str = "info",
) -> Iterator[None]:  # fmt: skip
    with calling_as(Caller(handler, model, hear, lambda: level)):
        yield


@contextmanager
def calling_as(caller: Caller) -> Iterator[None]:
    token = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(token)


def caller_here() -> Caller:
    return _caller.get() or Caller()


def question(source: str, params: Any, scrub: Scrub) -> tuple[Elicitation, bool]:
    """From the SDK's parameters of either mode; and whether it is whole. What is not is for the ledger only."""
    schema, url = getattr(params, "requested_schema", None) or {}, getattr(params, "url", "") or ""
    asked = [params.message, dict(schema), url]
    whole = len(params.message) <= LONGEST and len(json.dumps(asked[1:])) <= LONGEST
    message, schema, url = cleaned(asked if whole else [params.message[:LONGEST], {}, ""], scrub)
    return Elicitation(source, message, schema, url), whole


def elicited(question: Elicitation, context: Context, action: str, reason: str) -> Elicited:
    """The event that says what came of it: what was asked, by name; what was answered is between the two."""
    fields = question.schema.get("properties")
    names = [str(name)[:FIELD] for name in fields][:FIELDS] if isinstance(fields, Mapping) else []
    return Elicited(
        call=context.call_id, persona=context.persona, tool=context.tool, conversation=context.conversation,
        server=question.source, action=action, message=question.message[:WORDS], fields=names, reason=reason,
    )  # fmt: skip
