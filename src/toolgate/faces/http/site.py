"""ServerSite: the Site of a running server, with its connections, its counters and its end."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Request

from toolgate.core.errors import CallError
from toolgate.core.event import SETTLED
from toolgate.facade import Gate
from toolgate.faces.http.places import ConnectionPlaces
from toolgate.kits.web.site import Site
from toolgate.storage.port import Row

# Numbers for Prometheus, in its text format: what this process has recorded since it started, and what
# stands now.

BUCKETS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)
Labels = tuple[tuple[str, str], ...]


class MetricCounts:
    """Told of every committed row, from the thread that committed it."""

    def __init__(self, gate: Gate) -> None:
        self.events: Counter[tuple[str, str, str]] = Counter()
        """(kind, persona, tool)"""
        self.spent: Counter[str] = Counter()
        """Microseconds by persona."""
        self.within: Counter[tuple[str, float]] = Counter()
        self.answers: Counter[int] = Counter()
        """HTTP answers by status."""
        self.close = gate.on_commit(self._hear)

    def _hear(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self.events[row.kind, row.persona, row.tool] += 1
            if row.kind in SETTLED:
                micros = _micros(row.body)
                self.spent[row.persona] += micros
                for limit in BUCKETS:
                    if micros <= limit * 1_000_000:
                        self.within[row.persona, limit] += 1

    def lines(self, standing: dict[str, Any], persona: str = "") -> Iterator[str]:
        """All of it, or what concerns one persona."""
        yield from _family("toolgate_events_total", "counter", "Events recorded by this process.")
        for (kind, who, tool), count in sorted(self.events.copy().items()):
            if not persona or who == persona:
                labels = (("kind", kind), ("persona", who), ("tool", tool))
                yield _line("toolgate_events_total", labels, count)
        yield from self._durations(persona)
        if persona:
            return
        for name, help_text in _STANDING.items():
            yield from _family(f"toolgate_{name}", "gauge", help_text)
            yield _line(f"toolgate_{name}", (), standing[name])
        yield from _family("toolgate_http_responses_total", "counter", "HTTP answers by status.")
        for status, count in sorted(self.answers.copy().items()):
            yield _line("toolgate_http_responses_total", (("status", str(status)),), count)

    def _durations(self, persona: str) -> Iterator[str]:
        name = "toolgate_call_duration_seconds"
        yield from _family(name, "histogram", "How long calls ran.")
        events = self.events.copy()
        for who in sorted({who for kind, who, _ in events if kind in SETTLED}):
            if persona and who != persona:
                continue
            total = sum(n for (kind, owner, _), n in events.items() if owner == who and kind in SETTLED)
            for limit in BUCKETS:
                yield _line(
                    f"{name}_bucket", (("persona", who), ("le", f"{limit:g}")), self.within[who, limit]
                )
            yield _line(f"{name}_bucket", (("persona", who), ("le", "+Inf")), total)
            yield _line(f"{name}_sum", (("persona", who),), self.spent[who] / 1_000_000)
            yield _line(f"{name}_count", (("persona", who),), total)


def _micros(body: str) -> int:
    """Canonical JSON has it near the front: a body may hold a megabyte of result, and every call passes here."""
    found = _DURATION.search(body, 0, 4000)
    return int(found[1]) if found else 0


_DURATION = re.compile(r'"duration_us":(\d+)')
_STANDING = {
    "events": "Events in the ledger.",
    "bytes": "Bytes of the ledger on disk.",
    "running": "Calls that run now.",
    "open_questions": "Questions that wait for a human.",
    "followers": "Connections to the stream of events.",
}


def _family(name: str, kind: str, help_text: str) -> Iterator[str]:
    yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} {kind}"


def _line(name: str, labels: Labels, value: float) -> str:
    spelled = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
    return f"{name}{{{spelled}}} {value:g}" if labels else f"{name} {value:g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


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
