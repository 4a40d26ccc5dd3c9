"""A journal in memory: the same questions answered from lists and dictionaries. For tests and measurements."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from toolgate.storage import executions, schema
from toolgate.storage.executions import Counted, ExecutionRow, Executions, Keep
from toolgate.storage.port import (
    ClaimsOf,
    Filter,
    Fold,
    Head,
    Heavy,
    LoadTables,
    Query,
    Recent,
    Row,
    RowAt,
    RowsAfter,
    RowsOf,
    Submission,
    Sum,
    Sweep,
    Tables,
    Write,
    is_heavy,
)
from toolgate.storage.schema import AttachedBytes, Attachment, Grown


class MemoryBackend:
    """Holds everything; survives `close`, so a gate can be opened again on the same memory."""

    name = "memory"

    def __init__(self) -> None:
        self.journal: list[Row] = []
        self.keys: Any = None
        """The keys it was sealed with: they live and die with it."""
        self._head = Head(0, 0, 0, schema.EMPTY_HASH, "")
        self._executions: list[ExecutionRow] = []
        self._sums: dict[int, Sum] = {}
        self.attached: dict[int, Attachment] = {}
        self._tables: dict[str, dict[Any, tuple[Any, ...]]] = {name: {} for name in schema.PROJECTIONS}

    async def begun(self) -> bool:
        return bool(self.journal)

    async def open(self, fold: Fold) -> None:
        self._fold = fold

    async def close(self) -> None:
        return None

    async def submit(self, job: Submission, alone: Callable[[], bool] | None = None) -> Any:
        self.at_once(job)
        return job.value

    def at_once(self, job: Submission) -> bool:
        transaction = self._fold((job,), self._head)
        try:
            query = next(transaction)
            while True:
                query = transaction.send(self._answer(query))
        except StopIteration:
            pass
        if job.error is not None:
            raise job.error
        return True

    def _answer(self, query: Query) -> Any:
        if type(query) is Write:
            return self._write(query)
        match query:
            case ClaimsOf(scopes):
                return [row for row in self.journal if row.claim and row.claim in scopes]
            case RowsAfter(seq):
                return self._after(seq)
            case RowsOf(refs):
                wanted = frozenset(refs)
                return [row for row in self.journal if row.ref and row.ref in wanted]
            case RowAt(seq):
                return next((row for row in self._after(seq - 1)[:1] if row.seq == seq), None)
            case Recent(since, bodies):
                return [
                    (r.at, r.persona, r.tool, r.body if bodies else "")
                    for r in self.journal
                    if r.at > since and r.kind == "started"
                ]
            case Heavy(since):
                return [(r.at, r.persona, r.body) for r in self.journal if r.at > since and is_heavy(r.body)]
            case Sweep(at):
                self._let_go(at)
                claims = self._tables["claims"]
                self._tables["claims"] = {scope: row for scope, row in claims.items() if row[5] > at}
                return None
            case LoadTables(names):
                return {name: dict(self._tables[name]) for name in names}

    def _after(self, seq: int) -> list[Row]:
        before = self.journal[0].seq - 1 if self.journal else 0
        return self.journal[max(seq - before, 0) :]

    def _write(self, write: Write) -> None:
        self.journal.extend(write.rows)
        if write.archived:
            self.journal[:] = self._after(write.archived)
            self.attached = {seq: one for seq, one in self.attached.items() if seq > write.archived}
            self._answer(Sweep(write.head.at))
        self._head = write.head
        for (table, key), row in write.changes.items():
            if row is None:
                self._tables[table].pop(key, None)
            else:
                self._tables[table][key] = row
        if write.attached:
            self.attached |= {one.seq: one for one in write.attached}
            self._let_go(write.head.at)
            for persona in {one.persona for one in write.attached}:
                self._fit(persona, write.budget)

    def _let_go(self, now: int) -> None:
        asked = {row[1] for row in self._tables["questions"].values()}
        self.attached = {seq: one for seq, one in self.attached.items() if one.expires > now or seq in asked}

    def _fit(self, persona: str, budget: int) -> None:
        asked = {row[1] for row in self._tables["questions"].values()}
        for seq, one in sorted(self.attached.items(), reverse=True):
            if one.persona == persona and seq not in asked:
                budget -= one.bytes
                if budget < 0:
                    del self.attached[seq]

    async def head(self) -> Head:
        return self._head

    async def rows(self, wanted: Filter) -> list[Row]:
        rows = [row for row in self.journal if _fits(row, wanted)]
        return (rows[::-1] if wanted.newest_first else rows)[: wanted.limit]

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[MemoryBackend]:
        copy = MemoryBackend()
        copy.journal, copy._head = list(self.journal), self._head
        copy._tables = {name: dict(rows) for name, rows in self._tables.items()}
        yield copy

    async def scan(self, after: int = 0, batch: int = 5000) -> AsyncIterator[list[Row]]:
        rows = self._after(after)
        for start in range(0, len(rows), batch):
            yield rows[start : start + batch]

    async def tables(self) -> Tables:
        return {name: dict(rows) for name, rows in self._tables.items()}

    async def changed(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def size(self) -> int:
        return sum(len(row.body) for row in self.journal)

    async def sums(self, first: int, end: int) -> list[Sum]:
        return [self._sums[number] for number in range(first, end) if number in self._sums]

    async def keep_sums(self, sums: Sequence[Sum]) -> None:
        self._sums.update({one.number: one for one in sums})

    async def attachment(self, seq: int) -> str | None:
        found = self.attached.get(seq)
        return found.body if found else None

    async def grown(self, since: int) -> list[Grown]:
        by: dict[str, list[int]] = {}
        for row in self.journal:
            if row.at >= since:
                by.setdefault(row.persona, []).append(len(row.body) + 192)
        return [Grown(persona, len(sizes), sum(sizes)) for persona, sizes in sorted(by.items())]

    async def attachments(self) -> list[AttachedBytes]:
        by: dict[str, list[int]] = {}
        for one in self.attached.values():
            by.setdefault(one.persona, []).append(one.bytes)
        return [AttachedBytes(persona, len(sizes), sum(sizes)) for persona, sizes in sorted(by.items())]

    async def add_execution(self, row: ExecutionRow, keep: Keep) -> None:
        last = self._executions[-1].seq if self._executions else 0
        oldest = row.created_at - keep.days * executions.DAY
        rows = [*self._executions, row._replace(seq=last + 1)]
        self._executions = [one for one in rows if one.created_at >= oldest][-keep.rows :]

    async def executions(self, wanted: Executions) -> list[ExecutionRow]:
        found = [row for row in reversed(self._executions) if executions.fits(row, wanted)]
        return found[: wanted.limit]

    async def count_executions(self, wanted: Executions) -> list[Counted]:
        rows = [row for row in self._executions if executions.fits(row, wanted)]
        kinds = dict.fromkeys((row.success, row.error_category) for row in rows)
        return [
            Counted(*kind, len(took), sum(took))
            for kind in kinds
            for took in [[row.duration_ms for row in rows if (row.success, row.error_category) == kind]]
        ]


def _fits(row: Row, wanted: Filter) -> bool:
    for name in ("call", "persona", "tool", "conversation", "ref"):
        if getattr(wanted, name) and getattr(row, name) != getattr(wanted, name):
            return False
    if wanted.about and not any(
        name.startswith(wanted.about) or name.endswith(wanted.about) for name in (row.call, row.ref)
    ):
        return False
    if wanted.kinds and row.kind not in wanted.kinds:
        return False
    if wanted.body:
        body = json.loads(row.body)
        if any(body.get(name) != value for name, value in wanted.body.items()):
            return False
    return (
        row.seq > wanted.after
        and (not wanted.before or row.seq < wanted.before)
        and row.at >= wanted.since
        and (not wanted.until or row.at < wanted.until)
    )
