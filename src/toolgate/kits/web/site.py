"""Site: what every request of one server shares, as far as routes and pages may use it."""

from __future__ import annotations

import logging
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from toolgate.core.display import visible
from toolgate.kits.web.sessions import ConsoleSessions, Throttle
from toolgate.kits.web.tokens import Tokens

if TYPE_CHECKING:
    from toolgate.facade import Gate

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
    sessions: ConsoleSessions = field(default_factory=ConsoleSessions)
    throttle: Throttle = field(default_factory=Throttle)

    def shown(self, path: str) -> str:
        """A path as it may be logged: without the secret part of the console's, and harmless to read."""
        return visible(path.replace(self.base, "(console)")[:200])

    async def refused(self, what: str, persona: str = "") -> None:
        """Somebody tried what is not theirs. The ledger keeps it, floods counted."""
        log.warning("%s", what, extra={"persona": persona})
        await self.gate.refused(what, persona)


def site_of(request: Request) -> Site:
    found = request.app.state.site
    assert isinstance(found, Site)
    return found


Here = Annotated[Site, Depends(site_of)]
