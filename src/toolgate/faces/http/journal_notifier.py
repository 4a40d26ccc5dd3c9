"""Notifier for whoever follows the journal: after each commit of this process, and soon after those of others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from toolgate.core.errors import CallError
from toolgate.facade import Gate
from toolgate.storage.port import Row

PATIENCE_S = 30.0


class JournalNotifier:
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
                await self._gate.changed(PATIENCE_S)
            except CallError:  # the database is away for a moment; whoever follows is told when it reads
                await asyncio.sleep(1)
            self._beat()
