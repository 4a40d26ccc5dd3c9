"""How the ledger's questions are put to PostgreSQL.

A Write is one statement, whatever it touches: the head moves only if it is where we believe it to be, and
everything else in the statement happens only if the head moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import count
from typing import Any

from toolgate.core.errors import LedgerBroken
from toolgate.storage import schema
from toolgate.storage.port import (
    CUT,
    FREE,
    KEPT,
    ClaimsOf,
    Head,
    Heavy,
    LoadTables,
    Query,
    Recent,
    Row,
    RowAt,
    RowsAfter,
    RowsOf,
    Sweep,
    Write,
)

CHANNEL = "toolgate"
_CONSENT = frozenset({"asked", "approved", "refused", "expired", "granted", "revoked", "paused", "resumed"})
COLUMNS = ", ".join(schema.JOURNAL)
_IS_NUMBER = tuple(name in schema.NUMBERS for name in schema.JOURNAL)
NOW = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_HEAD = ", ".join(schema.HEAD)
HEAD = f"SELECT {_HEAD}, {NOW} FROM head WHERE id = 1"
# the clock is read after the lock was waited for, not before
LOCK = f"""
  WITH held AS MATERIALIZED (SELECT {_HEAD} FROM head WHERE id = 1 FOR UPDATE)
  SELECT {_HEAD}, {NOW} FROM held"""
# our own sessions only; answered with nothing once it is gone
END_SESSION = """
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE pid = $1 AND usename = current_user AND application_name = 'toolgate'"""
SIZE = "SELECT sum(pg_total_relation_size(to_regclass(name))) FROM unnest($1::text[]) AS name"


async def lock(db: Any) -> Head:
    row = await db.fetchrow(LOCK)
    if row is None:
        raise LedgerBroken("the ledger has no head", "restore a backup; `toolgate ledger verify` says more")
    return Head(*row)


async def answer(db: Any, query: Query) -> Any:
    """Everything but Write, which is more than an answer."""
    match query:
        case ClaimsOf(scopes):
            sql = f"SELECT {COLUMNS} FROM journal WHERE claim = ANY($1::text[]) AND claim <> '' ORDER BY seq"
            return rows_of(await db.fetch(sql, scopes))
        case RowsAfter(seq):
            return rows_of(await db.fetch(f"SELECT {COLUMNS} FROM journal WHERE seq > $1 ORDER BY seq", seq))
        case RowsOf(refs):
            sql = f"SELECT {COLUMNS} FROM journal WHERE ref = ANY($1::text[]) AND ref <> '' ORDER BY seq"
            return rows_of(await db.fetch(sql, refs))
        case RowAt(seq):
            row = await db.fetchrow(f"SELECT {COLUMNS} FROM journal WHERE seq = $1", seq)
            return Row._make(row) if row else None
        case Recent(since, bodies):
            body = "body" if bodies else "''"
            sql = f"SELECT at, persona, tool, {body} FROM journal WHERE at > $1 AND kind = 'started' ORDER BY seq"
            return [tuple(row) for row in await db.fetch(sql, since)]
        case Heavy(since):
            sql = "SELECT at, persona, body FROM journal WHERE at > $1 AND (length(body) > $2 OR strpos(body, $3) > 0 OR strpos(body, $4) > 0) ORDER BY seq"
            return [tuple(row) for row in await db.fetch(sql, since, FREE, CUT, KEPT)]
        case Sweep(at):
            await db.execute(schema.ATTACHED_DUE.format("$1"), at)
            await db.execute("DELETE FROM claims WHERE expires <= $1", at)
            return None
        case LoadTables(names):
            return await load(db, names)
        case Write():
            raise TypeError("a Write is not asked but committed")


def rows_of(records: Sequence[Any]) -> list[Row]:
    return list(map(Row._make, records))


async def read_head(db: Any) -> Head:
    row = await db.fetchrow(HEAD)
    return Head(*row) if row else Head(0, 0, 0, schema.EMPTY_HASH, "")


async def load(db: Any, names: Sequence[str]) -> dict[str, dict[Any, tuple[Any, ...]]]:
    tables = {}
    for name in names:
        found = await db.fetch(f"SELECT {', '.join(schema.PROJECTIONS[name])} FROM {name}")
        tables[name] = {row[0]: tuple(row) for row in found}
    return tables


def write_statement(write: Write, head: Head) -> tuple[str, list[Any]]:
    """SQL and values. It answers with the database's clock, or with nothing if the head is not as expected."""
    puts: dict[str, list[tuple[Any, ...]]] = {}
    drops: dict[str, list[Any]] = {}
    for (table, key), row in write.changes.items():
        if row is None:
            drops.setdefault(table, []).append(key)
        else:
            puts.setdefault(table, []).append(row)
    commit = "on" if write.durable else "off"  # off survives kill -9 but not a power cut: for reads
    values: list[Any] = [*write.head[:7], head.seq, head.hash, commit, _notice(write.rows)]
    values += [
        "\n".join(map(str, column) if number else column)
        for number, column in zip(_IS_NUMBER, zip(*write.rows, strict=True), strict=True)
    ]
    for rows in puts.values():
        values += zip(*rows, strict=True)
    values += drops.values()
    return _statement(tuple(puts), tuple(drops)), values


async def write_beside(db: Any, write: Write) -> None:
    """What one statement does not do; only under the lock."""
    if write.archived:  # the trigger is there again when anybody else can write
        await db.execute("ALTER TABLE journal DISABLE TRIGGER journal_no_change")
        await db.execute("DELETE FROM journal WHERE seq <= $1", write.archived)
        await db.execute("ALTER TABLE journal ENABLE ALWAYS TRIGGER journal_no_change")
        await db.execute("DELETE FROM attachments WHERE seq <= $1", write.archived)
        await db.execute("DELETE FROM claims WHERE expires <= $1", write.head.at)
    if write.attached:
        await db.executemany(schema.attach("$"), write.attached)
        for sql, values in schema.trim_attached(write.attached, write.head.at, write.budget, "$"):
            await db.execute(sql, *values)


def _notice(rows: Sequence[Row]) -> str:
    """What others are told at once: whoever waits for an answer waits no longer."""
    return "" if _CONSENT.isdisjoint([row[2] for row in rows]) else "consent"


@cache
def _statement(puts: tuple[str, ...], drops: tuple[str, ...]) -> str:
    """One text for each set of tables that is touched, so that each is prepared once."""
    given = count(12)
    parts = []

    def arrays(columns: Sequence[str]) -> str:
        return ", ".join(
            f"${next(given)}::{'bigint' if name in schema.NUMBERS else 'text'}[]" for name in columns
        )

    def lines(columns: Sequence[str]) -> str:
        """A column of the journal's rows as one text: no row has a line break in it (ledger/chain.py). An array would be
        looked at value by value on our side, which takes longer than all the rest of sending them."""
        marks = []
        for name in columns:
            split = f"string_to_array(${next(given)}::text, E'\\n')"
            # of an empty text it makes no value instead of one
            marks.append(
                f"{split}::bigint[]"
                if name in schema.NUMBERS
                else f"coalesce(nullif({split}, '{{}}'), '{{\"\"}}')"
            )
        return ", ".join(marks)

    parts.append(
        f"added AS (INSERT INTO journal ({COLUMNS}) SELECT r.* FROM moved, unnest({lines(schema.JOURNAL)}) AS r)"
    )
    for table in puts:
        columns = schema.PROJECTIONS[table]
        updates = ", ".join(f"{name} = excluded.{name}" for name in columns[1:])
        parts.append(
            f"put_{table} AS (INSERT INTO {table} ({', '.join(columns)}) "
            f"SELECT r.* FROM moved, unnest({arrays(columns)}) AS r "
            f"ON CONFLICT ({columns[0]}) DO UPDATE SET {updates})"
        )
    for table in drops:
        key = schema.PROJECTIONS[table][0]
        parts.append(
            f"drop_{table} AS (DELETE FROM {table} USING moved WHERE {table}.{key} = ANY({arrays((key,))}))"
        )
    return (
        "WITH moved AS (UPDATE head SET seq = $1, at = $2, key = $3, hash = $4, mac = $5, live = $6, "
        "questions = $7 WHERE id = 1 AND seq = $8 AND hash = $9 RETURNING id), "
        + ", ".join(parts)
        + f" SELECT {NOW}, set_config('synchronous_commit', $10, true), "
        f"CASE WHEN $11::text <> '' THEN pg_notify('{CHANNEL}', $11) END FROM moved"
    )
