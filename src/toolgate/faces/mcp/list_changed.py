"""Telling clients that their list of tools has changed: a policy was edited, a server came or went."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolgate.faces.mcp.listing import Listing

EVERY = 1.0
"""Seconds. A look costs one `stat` and a walk over the names of the tools; nobody waiting costs nothing."""


@dataclass(eq=False)
class _Watcher:
    persona: str
    tell: Callable[[], None]
    seen: tuple[Any, ...]
    names: list[str] | None = None
    """Not worked out until something has changed: a start should not wait for it."""


class Watching:
    def __init__(self, listing: Listing, every: float = EVERY) -> None:
        self._listing = listing
        self._every = every
        self._watchers: set[_Watcher] = set()
        self._task: asyncio.Task[None] | None = None

    def join(self, persona: str, tell: Callable[[], None]) -> Callable[[], None]:
        """Be told of changes from now on; what comes back ends it."""
        watcher = _Watcher(persona, tell, self._listing.stamp(persona))
        self._watchers.add(watcher)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._watch())
        return lambda: self._watchers.discard(watcher)

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _watch(self) -> None:
        while self._watchers:
            await asyncio.sleep(self._every)
            for watcher in list(self._watchers):
                self._look(watcher)
        self._task = None

    def _look(self, watcher: _Watcher) -> None:
        stamp = self._listing.stamp(watcher.persona)
        if stamp == watcher.seen:
            return
        watcher.seen = stamp
        try:
            names = self._listing.names(watcher.persona)
        except Exception:  # the policy cannot be read just now; the next change will tell
            return
        if names != watcher.names:
            watcher.names = names
            watcher.tell()
