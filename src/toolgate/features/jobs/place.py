"""Databases of jobs, and the lock of the one process that runs them: beside a SQLite ledger in a file of their own, or in a schema of the same PostgreSQL.

The engine's packages are an extra and heavy, so they are imported when the first job is looked for, not before.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from toolgate.core.errors import SetupError, Unavailable

if TYPE_CHECKING:
    import sqlalchemy


SCHEMA = "toolgate_jobs"
FILE = "jobs.db"
BUSY_MS = 30_000
log = logging.getLogger("toolgate.jobs")


def installed() -> bool:
    return find_spec("dbos") is not None


def from_engine(error: Exception, place: JobsPlace) -> Exception:
    """The one seam where errors of the engine and its drivers become ours. By name: they are an extra."""
    if not type(error).__module__.startswith(("dbos", "sqlalchemy", "psycopg", "sqlite3")):
        return error
    where = str(place.file) if place.directory is not None else "PostgreSQL"
    what = str(getattr(error, "orig", None) or error).splitlines()[0]
    fix = "check that it can be reached and written; jobs are apart from the ledger, which is not affected"
    return Unavailable(f"the jobs cannot be read or written ({where}): {what}", fix)


def need_engine() -> None:
    if not installed():
        raise SetupError("jobs need the package dbos, which is not installed", "pip install 'toolgate[jobs]'")


@dataclass(frozen=True, slots=True)
class JobsPlace:
    directory: Path | None = None
    """Of the SQLite ledger."""
    dsn: str = ""

    @property
    def file(self) -> Path:
        assert self.directory is not None
        return self.directory / FILE

    def connect(self) -> sqlalchemy.Engine:
        import sqlalchemy as sa

        if self.dsn:
            url = sa.make_url(self.dsn).set(drivername="postgresql+psycopg")
            return sa.create_engine(url, pool_size=5, max_overflow=5, pool_pre_ping=True)
        engine = sa.create_engine(f"sqlite:///{self.file}", connect_args={"timeout": BUSY_MS / 1000})
        sa.event.listen(engine, "connect", _as_engine_expects)
        return engine

    def exists(self, engine: sqlalchemy.Engine | None = None) -> bool:
        """Whether anything was ever submitted. Looking creates nothing."""
        if not self.dsn:
            return self.file.exists()
        import sqlalchemy as sa

        mine = engine or self.connect()
        try:
            return sa.inspect(mine).has_table("workflow_status", schema=SCHEMA)
        finally:
            if engine is None:
                mine.dispose()

    def create(self) -> None:
        """Make the tables, or bring them up to date; by one process at a time."""
        from dbos import DBOS

        if self.dsn:
            DBOS.migrate(self.dsn, schema=SCHEMA)  # takes a lock of its own
            return
        with self._alone():
            if self.file.exists():
                DBOS.migrate(f"sqlite:///{self.file}")
            else:
                self._make_file()

    def _make_file(self) -> None:
        """Elsewhere first: a process that dies halfway leaves no half file in its place."""
        from dbos import DBOS

        new = self.file.with_suffix(".new")
        for left in (new, *(new.with_name(new.name + end) for end in ("-wal", "-shm", "-journal"))):
            left.unlink(missing_ok=True)
        os.close(os.open(new, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600))
        DBOS.migrate(f"sqlite:///{new}")
        with closing(sqlite3.connect(new)) as db:
            db.execute("PRAGMA journal_mode = WAL")  # kept by the file: readers never wait for the writer
        new.rename(self.file)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        assert self.directory is not None
        handle = os.open(self.directory / "jobs.making", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def _as_engine_expects(connection: Any, record: Any) -> None:
    """What DBOS sets on connections of its own making, and the log."""
    connection.isolation_level = "IMMEDIATE"
    for pragma in (f"busy_timeout={BUSY_MS}", "foreign_keys=ON", "journal_mode=WAL", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}")
    if sqlite3.sqlite_version_info < (3, 42):
        connection.create_function("unixepoch", 1, _unixepoch)


def _unixepoch(modifier: str) -> float:
    """That of SQLite 3.42 for `subsec`: tables of DBOS ask for it wherever Python is 3.12 or later, and an older SQLite
    answers nothing."""
    if modifier != "subsec":
        raise ValueError(f"unixepoch({modifier!r}) is not known here")
    return round(time.time(), 3)


class EngineLog(logging.Handler):
    """What DBOS has to say goes where everything else goes, not to the terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        # that it ends what we told it to end is nothing to warn anybody of
        level = logging.DEBUG if message.startswith("Asyncio task cancelled") else record.levelno
        log.log(level, "%s", message, exc_info=record.exc_info)


def take_over_log() -> None:
    """Before anything of DBOS is used: it writes to stderr where it finds no handler."""
    theirs = logging.getLogger("dbos")
    theirs.setLevel(logging.WARNING)
    if not any(isinstance(handler, EngineLog) for handler in theirs.handlers):
        theirs.addHandler(EngineLog())
    theirs.propagate = False


# One process runs the jobs of a project: it holds a locked file, or a session lock of PostgreSQL. The
# kernel or the server releases it however the process ends, and then another may take over.

NUMBER = int.from_bytes(b"tg-jobs!")
LOOK_S = 2.0
TRIES, PAUSE_S = 4, 0.05


class Lock(Protocol):
    async def take(self) -> bool:
        """Whether it is ours now."""
        ...

    async def lost(self) -> None:
        """Return when it is no longer ours, though nobody gave it back."""
        ...

    async def release(self) -> None: ...

    async def held(self) -> bool:
        """Whether anybody holds it."""
        ...


def lock_of(place: JobsPlace) -> Lock:
    if place.dsn:
        return SessionLock(place.dsn)
    assert place.directory is not None
    return FileLock(place.directory / "jobs.lock")


async def taken(lock: Lock) -> bool:
    """Somebody who only looks whether it is held may be in the way for a moment."""
    for _ in range(TRIES):
        if await lock.take():
            return True
        await asyncio.sleep(PAUSE_S)
    return False


class FileLock:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    async def take(self) -> bool:
        handle = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
        self._handle = handle
        return True

    async def lost(self) -> None:
        await asyncio.Event().wait()  # the kernel takes nothing back

    async def release(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    async def held(self) -> bool:
        if self._handle is not None:
            return True
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            # shared, so that two may look at once
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        return False


class SessionLock:
    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._session: Any = None

    async def take(self) -> bool:
        from toolgate.storage.postgres_connect import close, connect

        session = await connect(self._dsn)
        try:
            if await session.fetchval("SELECT pg_try_advisory_lock($1)", NUMBER):
                self._session, session = session, None
                return True
            return False
        finally:
            if session is not None:
                await close(session)

    async def lost(self) -> None:
        from toolgate.storage.postgres_connect import ERRORS

        while self._session is not None:
            try:
                await self._session.fetchval("SELECT 1")
            except ERRORS:
                return
            await asyncio.sleep(LOOK_S)

    async def release(self) -> None:
        from toolgate.storage.postgres_connect import close

        session, self._session = self._session, None
        if session is not None:
            await close(session)

    async def held(self) -> bool:
        from toolgate.storage.postgres_connect import close, connect

        if self._session is not None:
            return True
        session = await connect(self._dsn)
        try:
            return not await session.fetchval("SELECT pg_try_advisory_xact_lock_shared($1)", NUMBER)
        finally:
            await close(session)
