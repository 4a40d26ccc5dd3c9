"""Which process owns a running call on PostgreSQL: a session lock, which the server releases however we end.

If the session is lost, others may take us for dead. So nothing more is written until the lock is ours again.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

from toolgate.core.call import new_id
from toolgate.core.errors import Unavailable
from toolgate.storage.faults import from_postgres, is_lost
from toolgate.storage.postgres_connect import ERRORS, close, connect, place_of

ATTEMPTS = 40
PAUSE = 0.05


class PostgresOwners:
    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._place = place_of(dsn)
        self.me = new_id("o")
        self._session: Any = None
        self._busy = asyncio.Lock()
        self._entered = False

    async def enter(self) -> None:
        self._entered = True
        await self.hold()

    async def leave(self) -> None:
        self._entered = False
        async with self._busy:
            session, self._session = self._session, None
            if session is not None:
                await close(session)

    @property
    def lost(self) -> bool:
        """Entered, and the session that proves it is gone."""
        return self._entered and (self._session is None or self._session.is_closed())

    async def hold(self) -> None:
        """Take the lock, again if need be; raise Unavailable while that is not possible."""
        async with self._busy:
            if not self.lost:
                return
            session = None
            try:
                session = await connect(self._dsn)
                await self._lock(session)
            except BaseException as error:
                if session is not None:
                    session.terminate()
                if isinstance(error, ERRORS):
                    raise from_postgres(error, self._place) from error
                raise
            self._session = session

    async def _lock(self, session: Any) -> None:
        for _ in range(
            ATTEMPTS
        ):  # somebody may just be looking whether we live, or our old session is ending
            if await session.fetchval("SELECT pg_try_advisory_lock($1)", _number(self.me)):
                return
            await asyncio.sleep(PAUSE)
        raise Unavailable(
            f"another session holds the owner lock of this process ({self.me})",
            "try again; the old session ends when the server notices that it is gone",
        )

    async def dead(self, owner: str) -> bool:
        """Whether nobody holds its lock. Shared and for one statement only, so that two may look at once."""
        if owner == self.me:
            return False
        await self.hold()
        async with self._busy:
            if self._session is None:
                raise Unavailable("the owner's session is closed", "open the gate again")
            try:
                sql = "SELECT pg_try_advisory_xact_lock_shared($1)"
                return bool(await self._session.fetchval(sql, _number(owner)))
            except ERRORS as error:
                if is_lost(error):
                    self._session.terminate()
                raise from_postgres(error, self._place) from error


def _number(owner: str) -> int:
    return int.from_bytes(hashlib.sha256(f"toolgate owner {owner}".encode()).digest()[:8], signed=True)
