"""ServerSite: the Site of a running server, with its connections, its counters and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from toolgate.core.errors import CallError
from toolgate.facade import Gate
from toolgate.faces.http.counts import MetricCounts
from toolgate.faces.http.places import ConnectionPlaces
from toolgate.kits.web.site import Site
from toolgate.storage.port import Row

OTHERS_PATIENCE_S = 30.0


class JournalNotifier:
    """Wakes whoever follows the journal: after each commit of this process, and soon after those of others."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._others: asyncio.Task[None] | None = None
        self.followers = 0
        self.close = gate.on_commit(self._hear)

    @property
    def news(self) -> asyncio.Event:
        """Take it before reading, wait for it after: then nothing is missed in between."""
        return self._news

    @contextmanager
    def following(self) -> Iterator[None]:
        """Other processes are watched only while somebody follows."""
        self.followers += 1
        if self._others is None:
            self._others = self._loop.create_task(self._watch())
        try:
            yield
        finally:
            self.followers -= 1
            if not self.followers:
                self._others.cancel()
                self._others = None

    def _hear(self, rows: Sequence[Row]) -> None:
        if self.followers:
            self._loop.call_soon_threadsafe(self._beat)

    def _beat(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def _watch(self) -> None:
        while True:
            try:
                await self._gate.changed(OTHERS_PATIENCE_S)
            except CallError:  # the database is away for a moment; whoever follows is told when it reads
                await asyncio.sleep(1)
            self._beat()


@dataclass
class ServerSite(Site):
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server is to end: streams and waiting calls let go."""
    closers: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """What faces that are mounted here do at the end, so that their connections do not hold it up."""

    def __post_init__(self) -> None:
        self.notifier = JournalNotifier(self.gate)
        self.counts = MetricCounts(self.gate)
        self.places = ConnectionPlaces(self.gate.config.http)


def server_of(request: Request) -> ServerSite:
    found = request.app.state.site
    assert isinstance(found, ServerSite)
    return found


HereServer = Annotated[ServerSite, Depends(server_of)]
