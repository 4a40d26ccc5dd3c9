"""ServerSite: the Site of a running server, with its connections, its counters and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from toolgate.faces.http.counts import Counts
from toolgate.faces.http.journal_notifier import JournalNotifier
from toolgate.faces.http.places import Places
from toolgate.kits.web.site import Site


@dataclass
class ServerSite(Site):
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server is to end: streams and waiting calls let go."""
    closers: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """What faces that are mounted here do at the end, so that their connections do not hold it up."""

    def __post_init__(self) -> None:
        self.notifier = JournalNotifier(self.gate)
        self.counts = Counts(self.gate)
        self.places = Places(self.gate.config.http)


def server_of(request: Request) -> ServerSite:
    found = request.app.state.site
    assert isinstance(found, ServerSite)
    return found


HereServer = Annotated[ServerSite, Depends(server_of)]
