"""The ledger as JSON lines, and the check of such an export by somebody who has no key."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING

from toolgate.core import wire
from toolgate.core.canonical import canonical
from toolgate.core.errors import CallError, LedgerBroken
from toolgate.ledger.verify import Chain, Report
from toolgate.storage.port import Backend, Row
from toolgate.storage.schema import JOURNAL, NUMBERS

if TYPE_CHECKING:
    from toolgate.ledger.checkpoint import Checkpoint

MAX_LINE = 1 << 30
"""Bytes. Rows of the first versions hold whole arguments, and results."""


def line_of(row: Row) -> str:
    """One event as one line; `body` stays the exact text that was hashed."""
    return canonical(row._asdict())


async def export(backend: Backend) -> AsyncIterator[str]:
    async with backend.snapshot() as snapshot:
        async for rows in snapshot.scan():
            for row in rows:
                yield line_of(row)


def verify_export(
    lines: Iterable[str], checkpoints: Iterable[Checkpoint], begin: tuple[int, str] | None = None
) -> Report:
    """The plain chain, and that it contains what the checkpoints signed. No secret is needed. `begin` is where an archive
    goes on: number and hash of the event before its first."""
    chain = Chain(None, checkpoints, begin) if begin else Chain(None, checkpoints)
    for batch in _batches(_rows(lines, chain)):
        if not chain.take(batch):
            return chain.report
    if chain.report.ok:
        chain.finish()
    return chain.report


def rows_in(lines: Iterable[str], name: str) -> Iterator[Row]:
    """The events of an archive; raises LedgerBroken for a line that is none."""
    for number, line in enumerate(lines, 1):
        try:
            yield row_of(line)
        except ValueError as error:
            raise LedgerBroken(
                f"{name}: line {number} is not an event: {error}", "get the file again"
            ) from None


def _rows(lines: Iterable[str], chain: Chain) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        try:
            yield row_of(line)
        except ValueError as error:
            chain.fail(number, f"line {number} is not an event: {error}")
            return


def row_of(line: str) -> Row:
    """The event of one line, which has exactly one spelling. Raises ValueError for everything else: what two programs
    could read in two ways proves nothing."""
    line = line.removesuffix("\n")
    try:
        data = wire.loads_object(line, limit=MAX_LINE)
        if list(data) != sorted(JOURNAL):
            raise ValueError(f"it has the fields {', '.join(data)[:200]}")
        row = Row(**data)
        for name, value in zip(JOURNAL, row, strict=True):
            if type(value) is not (int if name in NUMBERS else str):
                raise ValueError(f"{name} is of the wrong type")
        spelled = line_of(row)
        if line not in (spelled, wire.in_ascii(spelled)):
            raise ValueError("it is not canonical JSON")
        body = wire.loads_object(row.body, limit=MAX_LINE)
        if (
            "{" + ",".join(f"{canonical(name)}:{canonical(body[name])}" for name in sorted(body)) + "}"
            != row.body
        ):
            raise ValueError("its body is not canonical JSON")
    except CallError as error:
        raise ValueError(error.message) from None
    return row


def _batches(rows: Iterator[Row], size: int = 1000) -> Iterator[list[Row]]:
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) >= size:
            yield batch
            batch = []
    yield batch
