"""SQLite for a command that looks, or writes once, and ends: one connection, no thread and no event loop.

`pause` is the brake, so it may not wait until asyncio is loaded (`core/loops.py` runs it). The file, its locks and its transactions are the same
as a gate's; only who waits differs: here everything does, since nothing else runs in this process.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from toolgate.core.errors import Unavailable
from toolgate.storage.faults import from_sqlite
from toolgate.storage.sqlite import POLL, SqliteBackend
from toolgate.storage.sqlite_file import DatabaseFiles
from toolgate.storage.sqlite_sql import SqliteSnapshot, SqliteWriter, data_version

if TYPE_CHECKING:
    from toolgate.storage.port import Fold, Submission

T = TypeVar("T")


class SqliteDirect(SqliteBackend):
    async def open(self, fold: Fold) -> None:
        self._fold = fold
        db: sqlite3.Connection | None = None
        try:
            db = self._prepare()
            db.execute("SELECT seq FROM head").fetchone()  # SQLite makes its log's files when it first reads
            self._here = SqliteWriter(db, DatabaseFiles(self.path))
        except sqlite3.Error as error:
            if db is not None:
                db.close()
            raise from_sqlite(error, str(self.path)) from error
        except OSError as error:  # its files were taken away at once
            if db is not None:
                db.close()
            raise Unavailable(f"{error.filename}: {error.strerror}", "open the gate again") from error
        self._reader = db

    async def close(self) -> None:
        db, self._reader, self._here = self._reader, None, None
        if db is not None:
            db.close()

    def at_once(self, job: Submission) -> bool:
        if self._here is None:
            raise Unavailable("the ledger is closed", "open the gate again")
        while not self._commit(self._here, (job,)):
            pass  # no two guesses in a row are wrong: the second time it is asked
        if job.error is not None:
            raise job.error
        return True

    async def submit(self, job: Submission, alone: Callable[[], bool] | None = None) -> Any:
        self.at_once(job)
        return job.value

    async def changed(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        before = await self._select(data_version)
        while time.monotonic() < until and before == await self._select(data_version):
            time.sleep(min(POLL, seconds))  # noqa: ASYNC251 - nobody else wants a turn

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[SqliteSnapshot]:
        view = SqliteSnapshot(self.path, self._busy_ms, None)
        try:
            await view.open()
            yield view
        finally:
            await view.close()

    async def _read(self, function: Callable[[], T]) -> T:
        return function()
