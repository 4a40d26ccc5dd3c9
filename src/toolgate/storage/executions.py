"""The table `code_executions`: its columns, what may be asked of it, and the statements for both dialects.

It is kept beside the journal and not under its chain, because its rows may be trimmed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from toolgate.core.clock import SECOND
from toolgate.core.named_tuples import NamedTuple
from toolgate.storage.schema import binding, marks

DAY = 86_400 * SECOND


class ExecutionRow(NamedTuple):
    seq: int
    """Given by the database, in order; 0 in a row that is not stored yet."""
    id: str
    created_at: int
    call: str
    persona: str
    tool: str
    language: str
    session_id: str
    code: str
    stdout: str
    stderr: str
    exit_code: int | None
    duration_ms: float
    success: bool
    limit_hit: str
    error_category: str
    trigger_message: str
    llm_reasoning: str


class Keep(NamedTuple):
    """How much stays: whatever is older or more than this goes with the next row."""

    days: int = 30
    rows: int = 10_000


class Executions(NamedTuple):
    """Which rows are wanted, newest first; empty fields do not restrict."""

    since: int = 0
    before: int = 0
    """Only rows with a smaller `seq`: the next page."""
    persona: str = ""
    session_id: str = ""
    call: str = ""
    error_category: str = ""
    success: bool | None = None
    limit: int = 100


class Counted(NamedTuple):
    """Executions of one outcome."""

    success: bool
    error_category: str
    number: int
    duration_ms: float
    """Of all of them together."""


COLUMNS = ", ".join(ExecutionRow._fields)
_STORED = ExecutionRow._fields[1:]
_WORDS = ("persona", "session_id", "call", "error_category")


def insert(mark: str) -> str:
    """A connection that was lost on the way may have stored it: then it is there, and stays once."""
    given = ", ".join(marks(mark, len(_STORED)))
    return f"INSERT INTO code_executions ({', '.join(_STORED)}) VALUES ({given}) ON CONFLICT (id) DO NOTHING"


def trims(keep: Keep, now: int, mark: str) -> Iterable[tuple[str, int]]:
    """What is too old, and what is too much. Numbers are given in order, so the oldest rows are the smallest."""
    one = "?" if mark == "?" else "$1::bigint"
    yield f"DELETE FROM code_executions WHERE created_at < {one}", now - keep.days * DAY
    newest = "SELECT max(seq) FROM code_executions"
    yield f"DELETE FROM code_executions WHERE seq <= ({newest}) - {one}", keep.rows


def select(wanted: Executions, mark: str) -> tuple[str, list[Any]]:
    where, values, bind = _where(wanted, mark)
    limit = bind(wanted.limit)
    return f"SELECT {COLUMNS} FROM code_executions {where} ORDER BY seq DESC LIMIT {limit}", values


def count(wanted: Executions, mark: str) -> tuple[str, list[Any]]:
    where, values, _ = _where(wanted, mark)
    columns = "success, error_category"
    sql = f"SELECT {columns}, count(*), sum(duration_ms) FROM code_executions {where} GROUP BY {columns}"
    return sql, values


def _where(wanted: Executions, mark: str) -> tuple[str, list[Any], Callable[[Any], str]]:
    values: list[Any] = []
    bind = binding(values, mark)
    tests = [f"{name} = {bind(getattr(wanted, name))}" for name in _WORDS if getattr(wanted, name)]
    if wanted.since:
        tests.append(f"created_at >= {bind(wanted.since)}")
    if wanted.before:
        tests.append(f"seq < {bind(wanted.before)}")
    if wanted.success is not None:  # spelled out, so that the partial index is known to apply
        no = "success = 0" if mark == "?" else "NOT success"
        tests.append(f"NOT ({no})" if wanted.success else no)
    return f"WHERE {' AND '.join(tests)}" if tests else "", values, bind


def as_row(found: Iterable[Any]) -> ExecutionRow:
    row = ExecutionRow._make(found)
    return row._replace(success=bool(row.success))


def as_counted(found: Iterable[Any]) -> Counted:
    success, category, number, duration = found
    return Counted(bool(success), category, int(number), float(duration))


def fits(row: ExecutionRow, wanted: Executions) -> bool:
    return (
        all(getattr(row, name) == getattr(wanted, name) for name in _WORDS if getattr(wanted, name))
        and row.created_at >= wanted.since
        and (not wanted.before or row.seq < wanted.before)
        and wanted.success in (None, row.success)
    )
