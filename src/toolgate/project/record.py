"""The record of a project to read and to check, without a gate: no tool, no plugin, nothing written.

A gate refuses to open on a ledger that is damaged; whoever wants to know what is wrong with it comes here. What proves and counts is imported
when it is asked for: most commands only read.

Nothing inside a database can show that another one, or an older copy, was put in its place. So what this user has seen at
a path (which project, and how far its ledger went) is kept beside the trust store, in the user's own state directory.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolgate.core.clock import Clock, SystemClock
from toolgate.core.errors import LedgerBroken, NotFound
from toolgate.core.records import dataclass, field
from toolgate.ledger.attachments import whole_body
from toolgate.project import trust
from toolgate.storage import durable
from toolgate.storage.port import Filter, Head

if TYPE_CHECKING:
    from toolgate.ledger.checkpoint import Checkpoint
    from toolgate.ledger.keys import Keys
    from toolgate.ledger.traces import Traces
    from toolgate.ledger.verify import Progress, Report
    from toolgate.storage.port import Backend, Row


@dataclass(frozen=True)
class Record:
    """Made by `app.open_record`."""

    backend: Backend
    keys: Keys | None
    """None where the key is missing or cannot be used: then only the plain chain can be checked."""
    key_problem: LedgerBroken | None
    project: str
    clock: Clock = field(default_factory=SystemClock)
    root: Path | None = None
    """Where the project is, for what was seen there before."""

    async def head(self) -> Head:
        return await self.backend.head()

    async def events(self, wanted: Filter) -> list[Row]:
        return await self.backend.rows(wanted)

    async def life(self, ident: str) -> list[Row]:
        """Every row about a call, or about the call, question or grant of an event given by its number."""
        if ident.isascii() and ident.isdigit() and len(ident) < 19:
            number = int(ident)
            found = await self.backend.rows(Filter(after=number - 1, before=number + 1))
            if not found:
                raise NotFound(f"there is no event {ident}", "`toolgate ledger tail` shows events")
            row = found[0]
            if row.call:
                return await self._of_call(row.call)
            return await self.backend.rows(Filter(ref=row.ref)) if row.ref else found
        rows = await self._of_call(ident) or await self.backend.rows(Filter(ref=ident))
        if not rows:
            raise NotFound(f"nothing in the ledger is about {ident}", "`toolgate ledger tail` shows events")
        return rows

    async def whole(self, row: Row) -> Mapping[str, Any]:
        """All of what an event recorded, as far as it is kept."""
        try:
            return await whole_body(self.backend, row)
        except NotFound:
            return dict(json.loads(row.body))

    async def _of_call(self, call: str) -> list[Row]:
        """The call's own rows and those of the question or grant it used."""
        rows = await self.backend.rows(Filter(call=call))
        refs = {row.ref for row in rows if row.ref}
        more = [
            row for ref in refs for row in await self.backend.rows(Filter(ref=ref)) if row.kind != "started"
        ]
        return sorted({row.seq: row for row in (*rows, *more)}.values())

    async def growth(self, period: str, persona: str = "") -> dict[str, Any]:
        from toolgate.ledger import stats

        return await stats.growth(self.backend, period, self.clock.now(), persona)

    async def stats(self, period: str, persona: str) -> dict[str, Any]:
        from toolgate.ledger import stats

        return await stats.usage(self.backend, period, persona, self.clock.now())

    @property
    def traces(self) -> Traces:
        """The programs that were run, to read."""
        from toolgate.ledger.traces import Traces

        return Traces(self.backend, self.clock)

    async def verify(
        self,
        checkpoints: Iterable[Checkpoint],
        progress: Progress | None = None,
        archives: Iterable[Iterable[Row]] = (),
    ) -> Report:
        from toolgate.ledger.verify import verify

        return await verify(self.backend, self.keys, checkpoints, progress, self.clock.now(), archives)

    async def checkpoint(self) -> Checkpoint:
        if self.keys is None:
            raise self.key_problem or LedgerBroken("there is no key", "restore it")
        from toolgate.ledger import checkpoint as checkpoints

        return checkpoints.sign(await self.backend.head(), self.project, self.keys)

    def export(self) -> AsyncIterator[str]:
        from toolgate.ledger.verify import export

        return export(self.backend)


FIX = "restore the ledger that was there; if it was removed on purpose, `toolgate ledger checkpoint` says that this one counts"


def seen(root: Path, state_dir: Path) -> dict[str, Any]:
    """Project, number and hash of the newest event that was seen at this path; empty if nothing was."""
    try:
        found = json.loads(_file(root, state_dir).read_text())
    except (OSError, ValueError):
        return {}
    fields = {"project": str, "seq": int, "hash": str}
    fine = isinstance(found, dict) and all(type(found.get(name)) is kind for name, kind in fields.items())
    return found if fine else {}


def see(root: Path, state_dir: Path, project: str, head: Head) -> None:
    known = {"path": str(root.resolve()), "project": project, "seq": head.seq, "hash": head.hash}
    durable.replace(_file(root, state_dir), (json.dumps(known) + "\n").encode())


def _file(root: Path, state_dir: Path) -> Path:
    return state_dir / "places" / f"{hashlib.sha256(str(root.resolve()).encode()).hexdigest()}.json"


def another(root: Path, state_dir: Path, project: str) -> str:
    """What to say where another project was at this path; empty if none was."""
    before = seen(root, state_dir).get("project", "")
    if not before or before == project:
        return ""
    count = seen(root, state_dir)["seq"]
    return f"at {root.resolve()} there was another ledger before (project {before[:8]}…, {count:,} events)"


async def compare(record: Record) -> str:
    """What is wrong with this ledger, given what was seen at its path; empty if nothing is."""
    if record.root is None:
        return ""
    state_dir = trust.state_dir()
    other = another(record.root, state_dir, record.project)
    if other:
        return other
    known = seen(record.root, state_dir)
    if not known:
        return ""
    head = await record.head()
    if head.seq < known["seq"]:
        return f"the ledger ends at event {head.seq}, but event {known['seq']} was seen here before"
    rows = (
        await record.events(Filter(after=known["seq"] - 1, before=known["seq"] + 1)) if known["seq"] else []
    )
    if rows and rows[0].hash != known["hash"]:
        return f"event {known['seq']} is not the one that was seen here before"
    return ""


async def remember(record: Record) -> None:
    if record.root is not None and record.project and record.backend.name != "memory":
        with suppress(OSError):
            see(record.root, trust.state_dir(), record.project, await record.head())
