"""`toolgate doctor`: every check in turn; what is wrong comes with what to do about it. Here are those of the kernel; features
bring their own.

Each is an async generator of findings about one thing. They look and repair nothing, except that opening the gate
settles what dead owners left behind, as it always does. Of a project that is not trusted nothing is opened.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import stat
import sys
from collections.abc import AsyncIterator
from typing import Any, Literal

from toolgate.core.clock import SECOND, iso
from toolgate.core.errors import ConfigError
from toolgate.core.programs import find_program
from toolgate.feature import everything, load
from toolgate.kits.terminal import options, project, speech
from toolgate.kits.terminal.checkup import Check, Diagnosis, Patient
from toolgate.kits.terminal.command import command
from toolgate.kits.terminal.question import now
from toolgate.ledger.chain import check_head, running_of, standing_of
from toolgate.policy.simulation import run_examples
from toolgate.project import config, opening
from toolgate.project import record as records
from toolgate.project.record import Record
from toolgate.storage.port import Filter

MUCH_A_DAY = 1024 * 1024 * 1024
LOW_DISK = 200 * 1024 * 1024
SKEW = 60 * SECOND
_MARKS = {"ok": ("✓", "green"), "warn": ("!", "bold yellow"), "bad": ("✗", "bold red")}


async def python(patient: Patient) -> AsyncIterator[Diagnosis]:
    version = ".".join(map(str, sys.version_info[:3]))
    fine = sys.version_info >= (3, 11)
    yield Diagnosis("ok" if fine else "bad", "python", version, "install Python 3.11 or newer")


async def sqlite(patient: Patient) -> AsyncIterator[Diagnosis]:
    fine = sqlite3.sqlite_version_info >= (3, 35)
    yield Diagnosis(
        "ok" if fine else "bad", "sqlite", sqlite3.sqlite_version, "use a Python with SQLite 3.35 or newer"
    )


async def configuration(patient: Patient) -> AsyncIterator[Diagnosis]:
    file = patient.root / config.FILE
    if not file.exists():
        yield Diagnosis("bad", config.FILE, f"there is none in {patient.root}", "run `toolgate init`")
        return
    try:
        patient.setup = opening.prepare_ledger(patient.root)
    except ConfigError as error:
        yield Diagnosis("bad", config.FILE, error.message, error.fix)
        return
    problem = patient.setup.problem
    if problem is None:
        yield Diagnosis("ok", config.FILE, str(file))
    else:
        yield Diagnosis("bad", config.FILE, f"{problem.message}; every call is refused", problem.fix)
    if patient.setup.trusted:
        yield Diagnosis("ok", "trust", "this user trusts the project")
    else:
        yield Diagnosis(
            "warn",
            "trust",
            "not trusted: every effect is denied",
            "read toolgate.yaml, then `toolgate trust`",
        )


async def key(patient: Patient) -> AsyncIterator[Diagnosis]:
    if patient.setup is None or not patient.setup.trusted:
        return
    path = opening.key_path(patient.setup)
    if not path.exists():
        yield Diagnosis(
            "bad", "key", f"{path} is missing", "restore it from a backup; for a new project: `toolgate init`"
        )
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        yield Diagnosis("bad", "key", f"{path} can be read by others (mode {mode:04o})", f"chmod 600 {path}")
    else:
        yield Diagnosis("ok", "key", f"{path} (mode {mode:04o})")


async def database(patient: Patient) -> AsyncIterator[Diagnosis]:
    await patient.open_record()
    record = patient.record
    if record is None:
        return
    if record.backend.name == "memory":
        yield Diagnosis("ok", "database", "nothing has been recorded yet")
        return
    head = await record.head()
    yield Diagnosis(
        "ok", "database", f"{record.backend.name}, {head.seq} events, {await record.backend.size():,} bytes"
    )
    gone = await records.compare(record)
    if gone:
        yield Diagnosis("bad", "ledger", gone, records.FIX)
    async for finding in _growth(record):
        yield finding
    if record.keys is None:
        assert record.key_problem is not None
        yield Diagnosis("bad", "head", record.key_problem.message, record.key_problem.fix)
        return
    async with record.backend.snapshot() as snapshot:
        end = await snapshot.head()
        check_head(end, record.keys, end.live, standing_of(await snapshot.tables()))
    yield Diagnosis("ok", "head", f"sealed with key version {head.key}, last event {iso(head.at)}")
    behind = head.at - now()
    if behind > SKEW:
        yield Diagnosis(
            "bad",
            "clock",
            f"{behind / SECOND:,.0f} s behind the last event",
            "set the clock right; nothing runs until then",
        )
    else:
        yield Diagnosis("ok", "clock", "not behind the last event")


async def _growth(record: Record) -> AsyncIterator[Diagnosis]:
    found = await record.growth("1day")
    most = max(found["personas"], key=lambda one: one["bytes"], default=None)
    if most is None:
        return
    told = f"{found['bytes']:,} bytes in a day, most of them by {most['persona'] or 'nobody'} ({most['bytes']:,})"
    kept = sum(one["bytes"] for one in found["kept"])
    told += f"; {kept:,} kept beside it" if kept else ""
    much = found["bytes"] > MUCH_A_DAY
    yield Diagnosis(
        "warn" if much else "ok", "growth", told, "`toolgate ledger archive DIR` moves old events into a file"
    )


async def journal_mode(patient: Patient) -> AsyncIterator[Diagnosis]:
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
    yield Diagnosis("ok" if mode == "wal" else "bad", "journal mode", mode, fix)


async def disk(patient: Patient) -> AsyncIterator[Diagnosis]:
    free = shutil.disk_usage(patient.root).free
    yield Diagnosis(
        "ok" if free > LOW_DISK else "warn", "disk", f"{free / 2**30:,.1f} GiB free", "free some space"
    )


async def permissions(patient: Patient) -> AsyncIterator[Diagnosis]:
    local = patient.root / config.STATE
    if not local.exists():
        return
    mode = stat.S_IMODE(local.stat().st_mode)
    if mode & 0o022:
        yield Diagnosis(
            "bad", "permissions", f"others can write {local} (mode {mode:04o})", f"chmod 700 {local}"
        )
    elif mode & 0o055:
        yield Diagnosis(
            "warn", "permissions", f"others can read {local} (mode {mode:04o})", f"chmod 700 {local}"
        )
    else:
        yield Diagnosis("ok", "permissions", f"{local} is yours alone (mode {mode:04o})")


async def gate(patient: Patient) -> AsyncIterator[Diagnosis]:
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
    yield Diagnosis("ok", "gate", f"opens, with {len(patient.gate.tool_names())} tools")
    live, late = await patient.gate.running()
    ended = sorted(before - live)
    if late:
        call, since = late[0].call, iso(late[0].at)
        found = f"{len(live)}; {len(late)} for longer than they may, though the process lives: {call} since {since}"
        fix = f"find out, then `toolgate ledger resolve {call} happened|not`; or end that process, and open the gate again"
        yield Diagnosis("warn", "running calls", found, fix)
    elif ended:
        fix = f"`toolgate ledger show {ended[0]}` says how it was settled"
        yield Diagnosis(
            "warn", "running calls", f"{len(live)}; {len(ended)} of dead owners settled just now", fix
        )
    else:
        yield Diagnosis("ok", "running calls", f"{len(live)}, none of a dead owner")


async def unknown_calls(patient: Patient) -> AsyncIterator[Diagnosis]:
    if patient.gate is None:
        return
    unknown = await patient.gate.unknown_calls()
    if unknown:
        fix = f"find out, then `toolgate ledger resolve {unknown[-1]} happened|not`"
        yield Diagnosis("warn", "unknown calls", f"{len(unknown)}, the newest is {unknown[-1]}", fix)
    else:
        yield Diagnosis("ok", "unknown calls", "none")


async def images(patient: Patient) -> AsyncIterator[Diagnosis]:
    kept = (await patient.gate.stores()).get("images") if patient.gate is not None else None
    if kept is None:
        return
    size, budget = kept["bytes"], kept["budget"]
    fix = "changes that run or are unknown hold them: settle those, or raise images.total_bytes"
    state: Literal["ok", "warn"] = "warn" if size > budget * 1.25 else "ok"
    found = f"{kept['count']:,} for undo, {size / 2**20:,.1f} of {budget / 2**20:,.0f} MiB"
    yield Diagnosis(state, "images", found, fix)


async def questions(patient: Patient) -> AsyncIterator[Diagnosis]:
    if patient.gate is None:
        return
    waiting = len(await patient.gate.open_questions())
    state: Literal["ok", "warn"] = "warn" if waiting else "ok"
    yield Diagnosis(state, "open questions", str(waiting), "answer them: `toolgate approvals`")


async def policy_tests(patient: Patient) -> AsyncIterator[Diagnosis]:
    if patient.gate is None:
        return
    outcomes = run_examples(patient.gate.policy, patient.gate.facts_alone())
    failed = sum(not outcome.passed for outcome in outcomes)
    if failed:
        yield Diagnosis(
            "bad", "policy tests", f"{failed} of {len(outcomes)} fail", "`toolgate policy test` says which"
        )
    else:
        yield Diagnosis("ok", "policy tests", f"{len(outcomes)} pass" if outcomes else "there are none")


async def notifier(patient: Patient) -> AsyncIterator[Diagnosis]:
    if patient.setup is None or not patient.setup.config.consent.notify.desktop:
        return
    found = find_program("notify-send")
    fix = "install notify-send (libnotify), or set consent.notify.desktop to false"
    yield Diagnosis("ok" if found else "warn", "desktop notifier", found or "there is no notify-send", fix)


CHECKS: tuple[Check, ...] = (
    python, sqlite, configuration, key, database, journal_mode, disk, permissions, gate, unknown_calls, images,
    questions, policy_tests, notifier,
)  # fmt: skip


@command(epilog="Example: toolgate doctor --root ~/code/shop")
def doctor(root: options.Root = None, json: options.Json = False) -> None:
    """Check everything and say how to fix it; exit 1 if something is broken."""
    project.run(_doctor(root))


async def _doctor(root: Any) -> int:
    patient = Patient(project.locate(root))
    try:
        findings = [finding for check in CHECKS for finding in await _examine(check, patient)]
        findings += [finding for check in _brought(patient) for finding in await _examine(check, patient)]
    finally:
        await patient.close()
    broken = any(finding.state == "bad" for finding in findings)
    if not speech.finish([finding._asdict() for finding in findings], ok=not broken):
        _print(findings)
    return 1 if broken else 0


def _brought(patient: Patient) -> list[Check]:
    """The checks of features: also of those that the project itself brings, where its gate opens."""
    there = [each.feature for each in patient.gate.features.values()] if patient.gate else everything()
    return [check for feature in there if feature.checks for check in load(feature.checks)]


async def _examine(check: Any, patient: Patient) -> list[Diagnosis]:
    """A check that breaks is a finding, not the end of the examination."""
    try:
        return [finding async for finding in check(patient)]
    except Exception as error:
        fix = getattr(error, "fix", "") or "run `toolgate --debug doctor`"
        return [Diagnosis("bad", check.__name__.replace("_", " "), str(error), fix)]


def _print(findings: list[Diagnosis]) -> None:
    made = speech.table([" |whole", "check|whole", "finding"], [])
    for finding in findings:
        text = speech.safe(finding.found)
        if finding.fix and finding.state != "ok":
            text = text.append("\nfix: ", "bold") + speech.safe(finding.fix)
        made.add_row(speech.safe(*_MARKS[finding.state]), speech.safe(finding.what), text)
    speech.put(made)
