"""A commit-graph with changed-path filters, beside the view instead of in the repository.

It makes log and blame of deep files several times faster. Built in the background on first need; no call waits for
it, and without it answers are the same. Commits are found by the hash of their content, so a graph can be
incomplete, never wrong: what was committed since, or put in place of something else, is read from the objects.

A command lives for a second and a graph of a large repository takes several, so the building git outlives whoever
started it; see `builder`.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from dataclasses import dataclass

from toolgate.core.errors import CallError
from toolgate.workspace.git import builder
from toolgate.workspace.git.view import View

log = logging.getLogger("toolgate.git")
SECONDS = 900.0
AGAIN_S = 60.0
"""Refs that moved bring a new graph, but not more often than this."""


@dataclass(slots=True)
class Graph:
    view: View
    _task: asyncio.Task[None] | None = None
    _building: builder.Building | None = None
    _tips: frozenset[bytes] = frozenset()
    _built_at: float = float("-inf")

    def want(self) -> None:
        """Say that it would help. Returns at once."""
        if self._task is not None and not self._task.done():
            return
        tips = frozenset(self.view.refs.ids.values()) | {self.view.refs.head_id or b""}
        if tips == self._tips or time.monotonic() < self._built_at + AGAIN_S or self.view.refs.shallow:
            return  # git uses no graph in a shallow repository
        self._tips = tips
        self._task = asyncio.ensure_future(self._build(sorted(tips - {b""})))

    async def ready(self) -> None:
        """Until the graph that was wanted is there; for measurements and tests."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def close(self) -> bool:
        """True if a git goes on building, and with it needs the view."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        return self._building is not None and self._building.leave()

    async def _build(self, tips: list[bytes]) -> None:
        info = self.view.store.links / "info"
        name = hashlib.sha256(b"\n".join(tips)).hexdigest()
        if builder.settled(info, name):
            return
        try:
            commits = await self._commits(tips)
            self._building = builder.start(self.view, info, name, commits, SECONDS)
        except (CallError, OSError) as error:
            log.warning("no commit-graph for %s: %s", self.view.place.git, error)
            return
        if self._building is None:
            return  # another process is at it, and its graph serves us too
        said = await self._building.over(SECONDS)
        self._building = None
        if said:
            log.warning("no commit-graph for %s: %s", self.view.place.git, said)
        self._built_at = time.monotonic()

    async def _commits(self, tips: list[bytes]) -> bytes:
        """Refs may name trees or objects that are gone; a graph is made of commits."""
        checked = await self.view.git(
            "cat-file", "--batch-check=%(objecttype) %(objectname)",
            stdin=b"".join(tip + b"^{commit}\n" for tip in tips), seconds=SECONDS, cap=64 << 20,
        )  # fmt: skip
        lines = (line.split() for line in checked.data.splitlines())
        return b"".join(words[1] + b"\n" for words in lines if len(words) == 2 and words[0] == b"commit")
