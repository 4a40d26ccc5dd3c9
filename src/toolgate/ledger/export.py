"""The ledger as JSON lines, and the check of such an export by somebody who has no key."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator

from toolgate.core import wire
from toolgate.core.canonical import canonical
from toolgate.core.errors import CallError
from toolgate.ledger.checkpoint import Checkpoint
from toolgate.ledger.verify import Chain, Report
from toolgate.storage.port import Backend, Row
from toolgate.storage.schema import JOURNAL, NUMBERS


def line_of(row: Row) -> str:
    """One event as one line; `body` stays the exact text that was hashed."""
    return canonical(row._asdict())


async def export(backend: Backend) -> AsyncIterator[str]:
    async with backend.snapshot() as snapshot:
        async for rows in snapshot.scan():
            for row in rows:
                yield line_of(row)


def verify_export(lines: Iterable[str], checkpoints: Iterable[Checkpoint]) -> Report:
    """The plain chain, and that it contains what the checkpoints signed. No secret is needed."""
    chain = Chain(None, checkpoints)
    for batch in _batches(_rows(lines, chain)):
        if not chain.take(batch):
            return chain.report
    if chain.report.ok:
        chain.finish()
    return chain.report


def _rows(lines: Iterable[str], chain: Chain) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            data = wire.loads_object(line)
            row = Row(**data)
        except (CallError, TypeError) as error:
            chain.fail(number, f"line {number} is not an event: {error}")
            return
        if any(
            isinstance(value, int) is not (name in NUMBERS) for name, value in zip(JOURNAL, row, strict=True)
        ):
            chain.fail(number, f"line {number} has a column of the wrong type")
            return
        yield row


def _batches(rows: Iterator[Row], size: int = 1000) -> Iterator[list[Row]]:
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) >= size:
            yield batch
            batch = []
    yield batch
