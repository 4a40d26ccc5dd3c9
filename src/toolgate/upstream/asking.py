"""What a server wants to ask a human. It is the server's question, never toolgate's, and never counts as consent.

Whoever makes a call can show such questions: `with answering(handler): await gate.call(...)`. Where nobody does,
the server is told that the human declined.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

from toolgate.upstream.results import cleaned, defused


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


Handler = Callable[[Elicitation], Awaitable[Reply]]
_handler: ContextVar[Handler | None] = ContextVar("elicitation", default=None)


@contextmanager
def answering(handler: Handler) -> Iterator[None]:
    token = _handler.set(handler)
    try:
        yield
    finally:
        _handler.reset(token)


def handler_here() -> Handler | None:
    return _handler.get()


def question(source: str, params: Any) -> Elicitation:
    """From the SDK's parameters of either mode."""
    schema = cleaned(dict(getattr(params, "requested_schema", None) or {}), str)
    return Elicitation(source, defused(params.message), schema, defused(getattr(params, "url", "") or ""))
