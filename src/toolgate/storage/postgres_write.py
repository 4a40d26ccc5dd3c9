"""Writing to PostgreSQL: jobs folded into one transaction, under the head lock or, while we are alone, without.

While no other process writes, the head is where we left it. Then the ledger decides on that head and one statement
writes everything if, and only if, the head is still there: one round trip instead of four. The first time it is not,
nothing has been written, and the lock decides again until it is calm.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from toolgate.core.clock import SECOND
from toolgate.core.errors import LedgerBroken, Unavailable
from toolgate.storage import postgres_sql
from toolgate.storage.faults import from_postgres, is_lost, is_passing
from toolgate.storage.port import ClaimsOf, Fold, Head, Query, RowsOf, Submission, Transaction, Write, spoil
from toolgate.storage.postgres_connect import ERRORS, close, connect, place_of

if TYPE_CHECKING:
    from toolgate.storage.postgres_connect import PostgresOwners

ATTEMPTS = 4
CALM = 8
"""So many transactions in a row on the head we left ourselves mean that we are alone."""
GONE_S = 5.0
ROLLBACK_S = 5.0


class Elsewhere(Exception):
    """The head is not where we left it, or the question needs the lock."""


class PostgresWriter:
    """The writing connection. One transaction at a time: its user is the backend's one writing task."""

    def __init__(self, dsn: str, fold: Fold, server_clock: bool, owners: PostgresOwners | None) -> None:
        self._dsn = dsn
        self._place = place_of(dsn)
        self._fold = fold
        self._server_clock = server_clock
        self._owners = owners
        self._db: Any = None
        self._left: Head | None = None
        self._left_at = 0.0
        self._calm = 0

    @property
    def pid(self) -> int:
        """The server's process for us; 0 without a connection."""
        return 0 if self._db is None or self._db.is_closed() else int(self._db.get_server_pid())

    async def connection(self) -> Any:
        if self._db is None or self._db.is_closed():
            self._db = await connect(self._dsn)
        return self._db

    async def close(self) -> None:
        if self._db is not None:
            await close(self._db)
            self._db = None

    async def commit(self, jobs: Sequence[Submission]) -> None:
        """Decide all of them; what goes wrong with the database becomes their error."""
        for left in reversed(range(ATTEMPTS)):
            try:
                return await self._attempt(jobs)
            except ERRORS as error:
                if is_lost(error) and self._db is not None:
                    self._db.terminate()
                if left and is_passing(error):
                    continue
                spoil(jobs, from_postgres(error, self._place))
            except Exception as error:
                spoil(jobs, error)
            return None
        return None

    async def _attempt(self, jobs: Sequence[Submission]) -> None:
        if self._owners is not None and self._owners.lost:
            await self._owners.hold()  # others may think us dead: nothing is written before we live again
        db = await self.connection()
        if self._calm >= CALM:
            try:
                return await self._alone(db, jobs)
            except Elsewhere:
                self._calm = 0
        await self._locked(db, jobs)
        return None

    # --- under the lock ----------------------------------------------------------------------------------

    async def _locked(self, db: Any, jobs: Sequence[Submission]) -> None:
        transaction: Transaction | None = None
        try:
            await db.execute("BEGIN")
            head = await postgres_sql.lock(db)
            known = self._left
            self._calm = self._calm + 1 if known is not None and known[:7] == head[:7] else 0
            transaction = self._begin(jobs, head)
            head = await self._drive(transaction, db, head)
            if not db.is_closed() and db.is_in_transaction():
                await db.execute("COMMIT")  # nothing was recorded
        except BaseException:
            if transaction is not None:
                transaction.close()
            self._calm = 0
            await _abandon(db)
            raise
        self._leave(head)

    async def _drive(self, transaction: Transaction, db: Any, head: Head) -> Head:
        """Answer the ledger's questions; return where the head is then."""
        try:
            query = next(transaction)
            while True:
                answer: Any = None
                if isinstance(query, Write):
                    head = await self._write(db, query, head)
                else:
                    answer = await postgres_sql.answer(db, query)
                query = transaction.send(answer)
        except StopIteration:
            return head

    async def _write(self, db: Any, write: Write, head: Head) -> Head:
        sql, values = postgres_sql.write_statement(write, head)
        try:
            written = await db.fetchrow(sql, *values)
            if written is None:
                raise LedgerBroken("the head moved while it was locked", "run `toolgate ledger verify`")
            await postgres_sql.write_beside(db, write)
            if await db.execute("COMMIT") != "COMMIT":
                raise Unavailable("PostgreSQL rolled the transaction back", "try again")
        except ERRORS as error:
            if not await self._landed(db, error, write):
                raise
            return write.head
        return write.head._replace(now=written[0])

    # --- without the lock, while we are alone ------------------------------------------------------------

    async def _alone(self, db: Any, jobs: Sequence[Submission]) -> None:
        head = self._guess()
        transaction = self._begin(jobs, head)
        wrote = False
        try:
            query = next(transaction)
            while True:
                wrote |= isinstance(query, Write)
                answer = await self._answer_alone(db, query, head)
                head = answer if isinstance(query, Write) else head
                query = transaction.send(answer)
        except StopIteration:
            pass
        except BaseException as error:
            transaction.close()
            if wrote or isinstance(error, ERRORS) or not isinstance(error, Exception):
                raise  # not decided again: it may be there
            raise Elsewhere from error  # on a guess nothing is refused either: the lock decides
        self._leave(head if wrote else await self._still(db, head))

    async def _answer_alone(self, db: Any, query: Query, head: Head) -> Any:
        match query:
            case ClaimsOf() | RowsOf():  # true if the head is still there when we write
                return await postgres_sql.answer(db, query)
            case Write():
                return await self._write_alone(db, query, head)
        raise Elsewhere  # the ledger reads the journal: only the lock makes many answers one picture

    async def _write_alone(self, db: Any, write: Write, head: Head) -> Head:
        if write.attached or write.archived:
            raise Elsewhere  # more than one statement
        sql, values = postgres_sql.write_statement(write, head)
        try:
            written = await db.fetchrow(sql, *values)
        except ERRORS as error:
            if not await self._landed(db, error, write):
                raise
            return write.head
        if written is None:
            raise Elsewhere
        return write.head._replace(now=written[0])

    async def _still(self, db: Any, head: Head) -> Head:
        """Nothing was written: what was decided holds if nobody else has written either."""
        found = await postgres_sql.read_head(db)
        if found[:7] != head[:7]:
            raise Elsewhere
        return found

    def _guess(self) -> Head:
        """Where we left the head, with the database's clock as it should be by now."""
        assert self._left is not None
        passed = asyncio.get_running_loop().time() - self._left_at
        return self._left._replace(now=self._left.now + round(passed * SECOND))

    def _leave(self, head: Head) -> None:
        self._left, self._left_at = head, asyncio.get_running_loop().time()
        if not head.now:
            self._calm = 0  # the clock is not known

    # --- what became of it -------------------------------------------------------------------------------

    def _begin(self, jobs: Sequence[Submission], head: Head) -> Transaction:
        spoil(jobs, None)  # what an attempt before this one decided
        return self._fold(jobs, head if self._server_clock else head._replace(now=0))

    async def _landed(self, db: Any, error: Exception, write: Write) -> bool:
        """Whether a write whose connection broke was committed after all. If nobody can tell, raise Unavailable."""
        if not (is_lost(error) or db.is_closed()):
            return False
        pid = db.get_server_pid()
        db.terminate()
        last = write.rows[-1]
        try:
            fresh = await self.connection()
            await _until_gone(fresh, pid)
            stored = await fresh.fetchval("SELECT hash FROM journal WHERE seq = $1", last.seq)
        except ERRORS as second:  # not tried again: it may be there
            raise from_postgres(second, self._place) from error
        return bool(stored == last.hash)


async def _until_gone(db: Any, pid: int) -> None:
    """Only when the server's old process has ended is it decided what that process did."""
    async with asyncio.timeout(GONE_S):
        while await db.fetchval(postgres_sql.END_SESSION, pid):  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0.01)


async def _abandon(db: Any) -> None:
    """Leave no half transaction behind: roll back, or drop the connection."""
    try:
        if not db.is_closed() and db.is_in_transaction():
            await db.execute("ROLLBACK", timeout=ROLLBACK_S)
    except ERRORS:
        db.terminate()
