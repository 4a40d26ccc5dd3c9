"""One process runs the jobs of a project: it holds a locked file, or a session lock of PostgreSQL.

The kernel or the server releases it however the process ends, and then another may take over.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from pathlib import Path
from typing import Any, Protocol

from toolgate.features.jobs.place import JobsPlace

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
