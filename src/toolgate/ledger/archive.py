"""Moving the old part of a journal into a file, provably.

Only rows that nothing needs any more go: older than what undo is promised for and than every live idempotency claim, and
before the first row of any open question, grant, pause, running call or unknown outcome. The file is on disk,
signed and checked before one transaction records what went where and takes the rows out. Whoever is killed meanwhile
leaves the old state or the new one. The journal that is left begins after the last row of the file, and its sealed
row `archived` names that row's number and hash; so it proves its continuity by itself, and the whole with the file.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from toolgate.core.clock import iso
from toolgate.core.errors import InvalidArgs, LedgerBroken, NotFound
from toolgate.core.event import Archived
from toolgate.ledger import checkpoint as checkpoints
from toolgate.ledger.attachments import DAY
from toolgate.ledger.ledger import Ledger, View, Work, all_questions
from toolgate.ledger.state import KEY_LIFETIME, State
from toolgate.ledger.verify import line_of, verify_export
from toolgate.storage import durable
from toolgate.storage.port import Filter, Head, Row

LEAST_DAYS = 3
"""Claims live for two days; nothing younger goes."""


class Segment(NamedTuple):
    """What was archived."""

    first: int
    last: int
    hash: str
    file: Path
    checkpoint: Path
    sha256: str
    event: int


async def archive(ledger: Ledger, project: str, directory: Path, keep_days: int, by: str) -> Segment:
    if keep_days < LEAST_DAYS:
        raise InvalidArgs(
            f"{keep_days} days are too few", f"keep {LEAST_DAYS} at least: keys are remembered for two"
        )
    first, last = await _range(ledger, keep_days)
    await asyncio.to_thread(directory.mkdir, 0o700, True, True)
    file = directory / f"{project[:8] or 'ledger'}-{first:010d}-{last:010d}.jsonl"
    end, digest = await _write(ledger, file, last)
    signed = checkpoints.sign(Head(end.seq, end.at, end.key, end.hash, ""), project, ledger.keys)
    kept = file.with_suffix(".checkpoint.json")
    durable.replace(kept, (signed.as_json() + "\n").encode())
    _check(file, digest, signed, await _before(ledger, first))
    event = Archived(first=first, last=last, hash=end.hash, file=file.name, sha256=f"sha256:{digest}", by=by)

    def decide(view: View) -> None:
        if any(seq <= last for seq in _standing(view.state).values()):
            raise LedgerBroken("what was to be archived is needed again", "try again")
        view.emit(event)

    work = Work(decide, refs=all_questions)
    await ledger.do(work)
    return Segment(first, last, end.hash, file, kept, f"sha256:{digest}", work.rows[0].seq)


async def _range(ledger: Ledger, keep_days: int) -> tuple[int, int]:
    """The numbers of the first row and of the last one that may go."""
    now = ledger.clock.now()
    begin = await ledger.backend.rows(Filter(limit=1))
    young = await ledger.backend.rows(Filter(since=now - max(keep_days * DAY, KEY_LIFETIME + DAY), limit=1))
    head = await ledger.backend.head()
    last, why = (young[0].seq - 1, f"those since {iso(young[0].at)} are kept") if young else (head.seq, "")
    state = await ledger.look(lambda state, now: {**_standing(state), **state.doubts}, all_questions)
    for what, seq in state.items():
        if what.startswith("c_"):  # the row that says unknown is not the one that began it
            rows = await ledger.backend.rows(Filter(call=what, limit=1))
            seq, what = (rows[0].seq if rows else seq), f"the unknown call {what}"
        if seq <= last:
            last, why = seq - 1, f"{what} still needs event {seq}"
    if not begin or last < begin[0].seq:
        raise NotFound(f"there is nothing to archive: {why or 'nothing is recorded'}", "try again later")
    return begin[0].seq, last


def _standing(state: State) -> Mapping[str, int]:
    return (
        {f"the question {one.id}": one.row.seq for one in state.questions.values()}
        | {f"the grant {one.id}": one.row.seq for one in state.grants.values()}
        | {f"the running call {call}": one.row.seq for call, one in state.live.items()}
        | {f"the pause of {persona or 'everybody'}": seq for persona, seq in state.pauses.items()}
    )


async def _before(ledger: Ledger, first: int) -> tuple[int, str]:
    (row,) = await ledger.backend.rows(Filter(limit=1))
    return first - 1, row.prev


async def _write(ledger: Ledger, file: Path, last: int) -> tuple[Row, str]:
    """One line per event, on disk under its name once it is whole."""
    digest, end = hashlib.sha256(), None
    temporary = file.with_name(f".{file.name}.new")
    handle = os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "wb") as out:
            async with ledger.backend.snapshot() as snapshot:
                async for rows in snapshot.scan():
                    for row in rows:
                        if row.seq <= last:
                            line, end = (line_of(row) + "\n").encode(), row
                            digest.update(line)
                            out.write(line)
                    if rows[-1].seq >= last:
                        break
            out.flush()
            os.fsync(out.fileno())
        durable.rename(temporary, file)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    assert end is not None
    return end, digest.hexdigest()


def _check(file: Path, digest: str, signed: checkpoints.Checkpoint, begin: tuple[int, str]) -> None:
    """As whoever needs it one day will."""
    with file.open(encoding="utf-8", newline="\n") as lines:
        report = verify_export(lines, [signed], begin)
    if not report.ok or report.signed_to != signed.seq or sha256_of(file) != digest:
        raise LedgerBroken(
            f"{file} is not what was written: {report.fault or 'its hash differs'}",
            "nothing was taken out of the ledger; check the disk",
        )


def sha256_of(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
