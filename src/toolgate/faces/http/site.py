"""What every request of one server shares."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from toolgate.core.display import visible
from toolgate.core.event import Rejected
from toolgate.facade import Gate
from toolgate.faces.http.counts import Counts
from toolgate.faces.http.journal_notifier import Pulse
from toolgate.faces.http.places import Places
from toolgate.faces.http.sessions import Sessions
from toolgate.faces.http.throttle import Throttle
from toolgate.faces.tokens import Tokens

log = logging.getLogger("toolgate.http")


def secret_path() -> str:
    """Where the console lives. Browsers send cookies to every port of a host, so a page that an agent serves on
    another port of 127.0.0.1 would be given the session's cookie; a path it cannot guess keeps it from that."""
    return f"/c/{secrets.token_urlsafe(16)}"


@dataclass
class Site:
    gate: Gate
    tokens: Tokens
    hosts: tuple[str, ...] = ()
    """Names, besides those of loopback, by which it may be reached."""
    address: str = ""
    """Where a human opens the console, without a token."""
    base: str = field(default_factory=secret_path)
    sessions: Sessions = field(default_factory=Sessions)
    throttle: Throttle = field(default_factory=Throttle)
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server is to end: streams and waiting calls let go."""
    closers: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """What faces that are mounted here do at the end, so that their connections do not hold it up."""

    def __post_init__(self) -> None:
        ledger = self.gate.services.ledger
        self.pulse = Pulse(ledger)
        self.counts = Counts(ledger)
        self.places = Places(self.gate.config.http)

    def shown(self, path: str) -> str:
        """A path as it may be logged: without the secret part of the console's, and harmless to read."""
        return visible(path.replace(self.base, "(console)")[:200])

    async def refused(self, what: str, persona: str = "") -> None:
        """Somebody tried what is not theirs. The ledger keeps it, floods counted."""
        log.warning("%s", what, extra={"persona": persona})
        await self.gate.pipeline.refusals.keep(
            persona, lambda: Rejected(persona=persona, code="not_allowed", error=what[:500])
        )


def site_of(request: Request) -> Site:
    found = request.app.state.site
    assert isinstance(found, Site)
    return found


Here = Annotated[Site, Depends(site_of)]
