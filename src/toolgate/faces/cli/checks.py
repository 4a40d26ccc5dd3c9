"""The health checks. CHECKS is the whole list: a new room adds its own at the end.

Each is an async generator of findings about one thing. They look and repair nothing, except that opening the gate
settles what dead owners left behind, as it always does. Of a project that is not trusted nothing is opened.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import stat
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Literal, NamedTuple

from toolgate import app
from toolgate.app import Setup
from toolgate.core.clock import SECOND, iso
from toolgate.core.errors import ConfigError
from toolgate.facade import Gate
from toolgate.faces.cli.question import now
from toolgate.faces.cli.sandboxwords import sandbox_findings
from toolgate.faces.cli.serverwords import server_findings
from toolgate.features.jobs.place import installed
from toolgate.features.programs.config import SandboxSpec
from toolgate.gate.overdue import still_runs
from toolgate.ledger.chain import check_head, running_of
from toolgate.ledger.standing import standing_of
from toolgate.policy.examples import run_examples
from toolgate.policy.facts import facts_from
from toolgate.project import config
from toolgate.project import known_ledgers as places
from toolgate.project.record import Record
from toolgate.storage.port import Filter

MUCH_A_DAY = 1024 * 1024 * 1024
LOW_DISK = 200 * 1024 * 1024
SKEW = 60 * SECOND
SERVER_SECONDS = 15.0


class Finding(NamedTuple):
    state: Literal["ok", "warn", "bad"]
    what: str
    found: str
    fix: str = ""


class Patient:
    """The project under examination: opened once, when the first check needs it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.setup: Setup | None = None
        self.record: Record | None = None
        self.gate: Gate | None = None
        self._stack = AsyncExitStack()

    async def open_record(self) -> None:
        if self.setup is not None and self.setup.trusted:
            self.record = await self._stack.enter_async_context(app.open_record(self.setup))

    async def open_gate(self) -> None:
        self.gate = await self._stack.enter_async_context(app.open(self.root))

    async def close(self) -> None:
        await self._stack.aclose()


async def python(patient: Patient) -> AsyncIterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    fine = sys.version_info >= (3, 11)
    yield Finding("ok" if fine else "bad", "python", version, "install Python 3.11 or newer")


async def sqlite(patient: Patient) -> AsyncIterator[Finding]:
    fine = sqlite3.sqlite_version_info >= (3, 35)
    yield Finding(
        "ok" if fine else "bad", "sqlite", sqlite3.sqlite_version, "use a Python with SQLite 3.35 or newer"
    )


async def configuration(patient: Patient) -> AsyncIterator[Finding]:
    file = patient.root / config.FILE
    if not file.exists():
        yield Finding("bad", config.FILE, f"there is none in {patient.root}", "run `toolgate init`")
        return
    try:
        patient.setup = app.prepare_ledger(patient.root)
    except ConfigError as error:
        yield Finding("bad", config.FILE, error.message, error.fix)
        return
    problem = patient.setup.problem
    if problem is None:
        yield Finding("ok", config.FILE, str(file))
    else:
        yield Finding("bad", config.FILE, f"{problem.message}; every call is refused", problem.fix)
    if patient.setup.trusted:
        yield Finding("ok", "trust", "this user trusts the project")
    else:
        yield Finding(
            "warn",
            "trust",
            "not trusted: every effect is denied",
            "read toolgate.yaml, then `toolgate trust`",
        )


async def key(patient: Patient) -> AsyncIterator[Finding]:
    if patient.setup is None or not patient.setup.trusted:
        return
    path = app.key_path(patient.setup)
    if not path.exists():
        yield Finding(
            "bad", "key", f"{path} is missing", "restore it from a backup; for a new project: `toolgate init`"
        )
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        yield Finding("bad", "key", f"{path} can be read by others (mode {mode:04o})", f"chmod 600 {path}")
    else:
        yield Finding("ok", "key", f"{path} (mode {mode:04o})")


async def database(patient: Patient) -> AsyncIterator[Finding]:
    await patient.open_record()
    record = patient.record
    if record is None:
        return
    if record.backend.name == "memory":
        yield Finding("ok", "database", "nothing has been recorded yet")
        return
    head = await record.head()
    yield Finding(
        "ok", "database", f"{record.backend.name}, {head.seq} events, {await record.backend.size():,} bytes"
    )
    gone = await places.compare(record)
    if gone:
        yield Finding("bad", "ledger", gone, places.FIX)
    async for finding in _growth(record):
        yield finding
    if record.keys is None:
        assert record.key_problem is not None
        yield Finding("bad", "head", record.key_problem.message, record.key_problem.fix)
        return
    async with record.backend.snapshot() as snapshot:
        end = await snapshot.head()
        check_head(end, record.keys, end.live, standing_of(await snapshot.tables()))
    yield Finding("ok", "head", f"sealed with key version {head.key}, last event {iso(head.at)}")
    behind = head.at - now()
    if behind > SKEW:
        yield Finding(
            "bad",
            "clock",
            f"{behind / SECOND:,.0f} s behind the last event",
            "set the clock right; nothing runs until then",
        )
    else:
        yield Finding("ok", "clock", "not behind the last event")


async def _growth(record: Record) -> AsyncIterator[Finding]:
    found = await record.growth("1day")
    most = max(found["personas"], key=lambda one: one["bytes"], default=None)
    if most is None:
        return
    told = f"{found['bytes']:,} bytes in a day, most of them by {most['persona'] or 'nobody'} ({most['bytes']:,})"
    kept = sum(one["bytes"] for one in found["kept"])
    told += f"; {kept:,} kept beside it" if kept else ""
    much = found["bytes"] > MUCH_A_DAY
    yield Finding(
        "warn" if much else "ok", "growth", told, "`toolgate ledger archive DIR` moves old events into a file"
    )


async def journal_mode(patient: Patient) -> AsyncIterator[Finding]:
    file = patient.root / config.STATE / "ledger.db"
    if patient.record is None or patient.record.backend.name != "sqlite" or not file.exists():
        return

    def look() -> str:
        connection = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)
        try:
            return str(connection.execute("PRAGMA journal_mode").fetchone()[0])
        finally:
            connection.close()

    mode = await asyncio.to_thread(look)
    fix = "keep .toolgate on a local disk: network file systems cannot share a log"
    yield Finding("ok" if mode == "wal" else "bad", "journal mode", mode, fix)


async def disk(patient: Patient) -> AsyncIterator[Finding]:
    free = shutil.disk_usage(patient.root).free
    yield Finding(
        "ok" if free > LOW_DISK else "warn", "disk", f"{free / 2**30:,.1f} GiB free", "free some space"
    )


async def permissions(patient: Patient) -> AsyncIterator[Finding]:
    local = patient.root / config.STATE
    if not local.exists():
        return
    mode = stat.S_IMODE(local.stat().st_mode)
    if mode & 0o022:
        yield Finding(
            "bad", "permissions", f"others can write {local} (mode {mode:04o})", f"chmod 700 {local}"
        )
    elif mode & 0o055:
        yield Finding(
            "warn", "permissions", f"others can read {local} (mode {mode:04o})", f"chmod 700 {local}"
        )
    else:
        yield Finding("ok", "permissions", f"{local} is yours alone (mode {mode:04o})")


async def gate(patient: Patient) -> AsyncIterator[Finding]:
    """Opening a gate loads the plugins and settles what dead owners left behind."""
    if patient.setup is None or patient.setup.problem is not None or patient.record is None:
        return
    async with patient.record.backend.snapshot() as snapshot:
        head = await snapshot.head()
    before = set()
    for seq in running_of(head):
        rows = await patient.record.backend.rows(Filter(after=seq - 1, before=seq + 1))
        before |= {row.call for row in rows}
    await patient.open_gate()
    assert patient.gate is not None
    yield Finding("ok", "gate", f"opens, with {len(patient.gate.services.registry)} tools")
    services = patient.gate.services
    live, late = await services.ledger.look(
        lambda state, now: (
            set(state.live),
            [item for item in state.live.values() if not still_runs(services, item, now)],
        )
    )
    ended = sorted(before - live)
    if late:
        call, since = late[0].row.call, iso(late[0].row.at)
        found = f"{len(live)}; {len(late)} for longer than they may, though the process lives: {call} since {since}"
        fix = f"find out, then `toolgate ledger resolve {call} happened|not`; or end that process, and open the gate again"
        yield Finding("warn", "running calls", found, fix)
    elif ended:
        fix = f"`toolgate ledger show {ended[0]}` says how it was settled"
        yield Finding(
            "warn", "running calls", f"{len(live)}; {len(ended)} of dead owners settled just now", fix
        )
    else:
        yield Finding("ok", "running calls", f"{len(live)}, none of a dead owner")


async def unknown_calls(patient: Patient) -> AsyncIterator[Finding]:
    if patient.gate is None:
        return
    unknown = await patient.gate.services.ledger.look(lambda state, now: list(state.doubts))
    if unknown:
        fix = f"find out, then `toolgate ledger resolve {unknown[-1]} happened|not`"
        yield Finding("warn", "unknown calls", f"{len(unknown)}, the newest is {unknown[-1]}", fix)
    else:
        yield Finding("ok", "unknown calls", "none")


async def images(patient: Patient) -> AsyncIterator[Finding]:
    kept = (await patient.gate.stores()).get("images") if patient.gate is not None else None
    if kept is None:
        return
    size, budget = kept["bytes"], kept["budget"]
    fix = "changes that run or are unknown hold them: settle those, or raise images.total_bytes"
    state: Literal["ok", "warn"] = "warn" if size > budget * 1.25 else "ok"
    found = f"{kept['count']:,} for undo, {size / 2**20:,.1f} of {budget / 2**20:,.0f} MiB"
    yield Finding(state, "images", found, fix)


async def questions(patient: Patient) -> AsyncIterator[Finding]:
    if patient.gate is None:
        return
    waiting = len(await patient.gate.services.desk.open_ids())
    state: Literal["ok", "warn"] = "warn" if waiting else "ok"
    yield Finding(state, "open questions", str(waiting), "answer them: `toolgate approvals`")


async def policy_tests(patient: Patient) -> AsyncIterator[Finding]:
    if patient.gate is None:
        return
    outcomes = run_examples(patient.gate.policy, facts_from(patient.gate.services.registry))
    failed = sum(not outcome.passed for outcome in outcomes)
    if failed:
        yield Finding(
            "bad", "policy tests", f"{failed} of {len(outcomes)} fail", "`toolgate policy test` says which"
        )
    else:
        yield Finding("ok", "policy tests", f"{len(outcomes)} pass" if outcomes else "there are none")


async def notifier(patient: Patient) -> AsyncIterator[Finding]:
    if patient.setup is None or not patient.setup.config.consent.notify.desktop:
        return
    found = shutil.which("notify-send")
    fix = "install notify-send (libnotify), or set consent.notify.desktop to false"
    yield Finding("ok" if found else "warn", "desktop notifier", found or "there is no notify-send", fix)


async def servers(patient: Patient) -> AsyncIterator[Finding]:
    """Each is started and asked, all at once and not for long; what nobody has approved is not started."""
    upstream = patient.gate.upstream if patient.gate is not None else None
    if upstream is None:
        return
    known = upstream.status()
    approved = [
        one["name"] for one in known if one["approved"] and not one["moved"] and one["state"] != "disabled"
    ]
    asked = await asyncio.gather(
        *(upstream.check(name, SERVER_SECONDS) for name in approved), return_exceptions=True
    )
    answers = dict(zip(approved, asked, strict=True))
    for one in upstream.status():
        for finding in server_findings(one, answers.get(one["name"])):
            yield Finding(*finding)


async def jobs(patient: Patient) -> AsyncIterator[Finding]:
    """Silent for those who have none."""
    if patient.setup is None or patient.gate is None:
        return
    wanted = patient.setup.config.jobs.run
    kept = (patient.root / config.STATE / "jobs.db").exists()
    if not wanted and not kept:
        return
    if not installed():
        what = "`jobs: {run: true}` is set" if wanted else "there are jobs"
        yield Finding(
            "bad", "jobs", f"{what}, and the package dbos is not installed", "pip install 'toolgate[jobs]'"
        )
        return
    waiting = await patient.gate.jobs.find(limit=1000, open_only=True)
    if waiting and not await patient.gate.jobs.attended():
        fix = "`toolgate jobs run`, or `jobs: {run: true}` in toolgate.yaml and `toolgate up`"
        yield Finding("warn", "jobs", f"{len(waiting)} not ended, and no process runs them", fix)
    else:
        yield Finding("ok", "jobs", f"{len(waiting)} not ended")


async def sandbox(patient: Patient) -> AsyncIterator[Finding]:
    """Every mode is tried, with a process that does nothing."""
    spec = patient.setup.config.sandbox if patient.setup is not None else SandboxSpec()
    for finding in await asyncio.to_thread(lambda: list(sandbox_findings(spec))):
        yield Finding(*finding)


Check = Callable[[Patient], AsyncIterator[Finding]]
CHECKS: list[Check] = [
    python, sqlite, configuration, key, database, journal_mode, disk, permissions, gate, unknown_calls, images,
    questions, policy_tests, notifier, servers, jobs, sandbox,
]  # fmt: skip
