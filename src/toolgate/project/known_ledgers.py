"""What this user has seen at a path before: which project, and how far its ledger went.

Nothing inside a database can show that another one, or an older copy, was put in its place. What was seen is kept beside
the trust store, in the user's own state directory.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from toolgate.project import trust
from toolgate.project.record import Record
from toolgate.storage import durable
from toolgate.storage.port import Filter, Head

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
