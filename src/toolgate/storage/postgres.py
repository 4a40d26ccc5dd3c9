"""PostgreSQL: one writing task per process, jobs folded together under one head lock, many hosts on one journal.

Jobs that arrive while a commit is under way wait for the next one and share it. Everything lives on the event
loop that opened it. Three connections: one writes, one reads and listens, one proves that we live (owners).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from toolgate.core.errors import Unavailable
from toolgate.storage import executions, postgres_sql, schema
from toolgate.storage.faults import from_postgres, is_lost
from toolgate.storage.port import Filter, Fold, Head, Row, Submission, Sum, Tables, finish, spoil
from toolgate.storage.postgres_connect import ERRORS, PostgresOwners, close, connect, migrate, place_of
from toolgate.storage.postgres_write import PostgresWriter
from toolgate.storage.schema import AttachedBytes, Grown, select_rows

if TYPE_CHECKING:
    from toolgate.storage.executions import Counted, ExecutionRow, Executions, Keep

MAX_BATCH = 256
SPLIT = 32
RETRY = 0.5
GRACE = 0.5
"""How long news stays news: for waiters that looked just before it came and wait just after."""

T = TypeVar("T")


class PostgresBackend:
    name = "postgres"

    def __init__(self, dsn: str, use_server_clock: bool = True) -> None:
        self.dsn = dsn
        self.place = place_of(dsn)
        self._server_clock = use_server_clock
        self._queue: deque[Submission] = deque()
        self._owners: PostgresOwners | None = None
        self._writer: PostgresWriter | None = None
        self._reader: Any = None
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    def owners(self) -> PostgresOwners:
        self._owners = PostgresOwners(self.dsn)
        return self._owners

    async def begun(self) -> bool:
        try:
            connection = await connect(self.dsn)
            try:
                if await connection.fetchval("SELECT to_regclass('journal')") is None:
                    return False
                return bool(await connection.fetchval("SELECT EXISTS (SELECT FROM journal)"))
            finally:
                await close(connection)
        except ERRORS as error:
            raise from_postgres(error, self.place) from error

    async def open(self, fold: Fold) -> None:
        self._writer = PostgresWriter(self.dsn, fold, self._server_clock, self._owners)
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        self._reading = asyncio.Lock()
        self._news = asyncio.Event()
        self._news_at = -GRACE
        self._closing = False
        try:
            await migrate(await self._writer.connection(), self.place)
            async with self._reading:
                await self._listening()
        except BaseException as error:
            await self._disconnect()
            if isinstance(error, ERRORS):
                raise from_postgres(error, self.place) from error
            raise
        self._task = asyncio.create_task(self._write_forever(self._writer), name="toolgate-write")

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            self._closing = True
            self._arrived.set()
            await asyncio.wait((task,))
        await self._disconnect()

    def at_once(self, job: Submission) -> bool:
        return False  # the network is waited for

    async def submit(self, job: Submission, alone: Callable[[], bool] | None = None) -> Any:
        if self._task is None or self._task.done():
            raise Unavailable("the ledger is closed", "open the gate again")
        job.future = self._loop.create_future()
        self._queue.append(job)
        self._arrived.set()
        return await job.outcome()

    # --- the writing task --------------------------------------------------------------------------------

    async def _write_forever(self, writer: PostgresWriter) -> None:
        jobs: list[Submission] = []
        try:
            while True:
                await self._arrived.wait()
                self._arrived.clear()
                while self._queue:
                    jobs = self._take()
                    await writer.commit(jobs)
                    finish(jobs)
                if self._closing:
                    return
        finally:  # nobody waits for a task that is gone
            gone = Unavailable("the ledger was closed before this was decided", "open the gate again")
            left = [job for job in (*jobs, *self._queue) if not job.finished]
            spoil(left, gone)
            finish(left)
            self._queue.clear()

    def _take(self) -> list[Submission]:
        """Half of many, so that the callers of one half can work while the other half is committed."""
        waiting = len(self._queue)
        size = min(waiting, max(SPLIT, (waiting + 1) // 2), MAX_BATCH)
        return [self._queue.popleft() for _ in range(size)]

    # --- readers -----------------------------------------------------------------------------------------

    async def head(self) -> Head:
        return await self._select(postgres_sql.read_head)

    async def rows(self, wanted: Filter) -> list[Row]:
        sql, values = select_rows(wanted, "$")

        async def read(db: Any) -> list[Row]:
            return postgres_sql.rows_of(await db.fetch(sql, *values))

        return await self._select(read)

    async def size(self) -> int:
        names = ["journal", "head", "code_executions", "attachments", *schema.PROJECTIONS]
        return int(await self._select(lambda db: db.fetchval(postgres_sql.SIZE, names)) or 0)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[PostgresSnapshot]:
        try:
            connection = await connect(self.dsn, idle_in_transaction_session_timeout="0")
        except ERRORS as error:
            raise from_postgres(error, self.place) from error
        try:
            view = PostgresSnapshot(connection, self.place)
            await view.open()
            yield view
        finally:
            await close(connection)

    async def changed(self, seconds: float) -> None:
        """Another process's news arrive by NOTIFY. A lost listener counts as news: some may have been missed."""
        if self._task is None:
            raise Unavailable("the ledger is closed", "open the gate again")
        deadline = self._loop.time() + seconds
        if self._loop.time() - self._news_at < GRACE:
            await asyncio.sleep(min(GRACE / 10, seconds))
            return
        news = self._news
        while (left := deadline - self._loop.time()) > 0:
            try:
                async with asyncio.timeout(left):
                    async with self._reading:
                        await self._listening()
                    await news.wait()
                return
            except TimeoutError:
                if self._reader is not None and not self._reader.is_closed():
                    return
            except ERRORS:
                pass
            await asyncio.sleep(min(RETRY, left))

    async def sums(self, first: int, end: int) -> list[Sum]:
        sql = schema.SUMS.format("$1::bigint", "$2::bigint")
        return [Sum(*row) for row in await self._select(lambda db: db.fetch(sql, first, end))]

    async def keep_sums(self, sums: Sequence[Sum]) -> None:
        await self._select(lambda db: db.executemany(schema.KEEP_SUM.format("$1", "$2", "$3"), sums))

    # --- attachments -------------------------------------------------------------------------------------

    async def attachment(self, seq: int) -> str | None:
        sql = schema.ATTACHED.format("$1")
        found = await self._select(lambda db: db.fetchval(sql, seq))
        return None if found is None else str(found)

    async def grown(self, since: int) -> list[Grown]:
        sql = schema.GROWN.format("at >= $1")
        return [Grown(*row) for row in await self._select(lambda db: db.fetch(sql, since))]

    async def attachments(self) -> list[AttachedBytes]:
        return [AttachedBytes(*row) for row in await self._select(lambda db: db.fetch(schema.ATTACHED_KEPT))]

    # --- code_executions ---------------------------------------------------------------------------------

    async def add_execution(self, row: ExecutionRow, keep: Keep) -> None:
        async def add(db: Any) -> None:
            async with db.transaction():
                await db.execute("SET LOCAL synchronous_commit = off")
                await db.execute(executions.insert("$"), *row[1:])
                for sql, value in executions.trims(keep, row.created_at, "$"):
                    await db.execute(sql, value)

        await self._select(add)

    async def executions(self, wanted: Executions) -> list[ExecutionRow]:
        sql, values = executions.select(wanted, "$")
        return [executions.as_row(row) for row in await self._select(lambda db: db.fetch(sql, *values))]

    async def count_executions(self, wanted: Executions) -> list[Counted]:
        sql, values = executions.count(wanted, "$")
        return [executions.as_counted(row) for row in await self._select(lambda db: db.fetch(sql, *values))]

    def _tell(self) -> None:
        self._news_at = self._loop.time()
        self._news.set()
        self._news = asyncio.Event()

    def _hear(self, connection: Any, pid: int, channel: str, payload: str) -> None:
        if self._writer is None or pid != self._writer.pid:  # our own are announced in process
            self._tell()

    async def _select(self, query: Callable[[Any], Awaitable[T]]) -> T:
        if self._task is None:
            raise Unavailable("the ledger is closed", "open the gate again")
        for left in (1, 0):
            try:
                async with self._reading:
                    return await query(await self._listening())
            except ERRORS as error:
                if is_lost(error) and self._reader is not None:
                    self._reader.terminate()
                if not (left and is_lost(error)):
                    raise from_postgres(error, self.place) from error
        raise AssertionError("unreachable")

    # --- connections -------------------------------------------------------------------------------------

    async def _listening(self) -> Any:
        """The reading connection, which also listens; made again if it was lost. Call with the lock held."""
        if self._reader is None or self._reader.is_closed():
            reader = await connect(self.dsn)
            try:
                await reader.add_listener(postgres_sql.CHANNEL, self._hear)
            except BaseException:
                reader.terminate()
                raise
            reader.add_termination_listener(lambda _: self._tell())
            self._reader = reader
        return self._reader

    async def _disconnect(self) -> None:
        if self._writer is not None:
            await self._writer.close()
        if self._reader is not None:
            await close(self._reader)
        self._reader = None


class PostgresSnapshot:
    """A read-only transaction of its own connection: consistent however long it takes."""

    def __init__(self, connection: Any, place: str) -> None:
        self._db = connection
        self._place = place

    async def open(self) -> None:
        await self._ask(self._db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"))
        await self.head()  # the first statement is the moment

    async def head(self) -> Head:
        return await self._ask(postgres_sql.read_head(self._db))

    async def scan(self, after: int = 0, batch: int = 5000) -> AsyncIterator[list[Row]]:
        sql = f"SELECT {postgres_sql.COLUMNS} FROM journal WHERE seq > $1 ORDER BY seq LIMIT $2"
        while True:
            rows = postgres_sql.rows_of(await self._ask(self._db.fetch(sql, after, batch)))
            if not rows:
                return
            yield rows
            after = rows[-1].seq

    async def tables(self) -> Tables:
        return await self._ask(postgres_sql.load(self._db, tuple(schema.PROJECTIONS)))

    async def _ask(self, asked: Awaitable[T]) -> T:
        try:
            return await asked
        except ERRORS as error:
            raise from_postgres(error, self._place) from error
