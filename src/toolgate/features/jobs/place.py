"""Where jobs are kept: beside a SQLite ledger in a file of their own, or in a schema of the same PostgreSQL.

The engine's packages are an extra and heavy, so they are imported when the first job is looked for, not before.
"""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
