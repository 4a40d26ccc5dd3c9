"""The schema, once, for every dialect, and the one builder of the readers' SELECT, so that all filter alike.

`journal` is append-only; the projections of it are recomputed by `verify`; `code_executions` (executions.py) and
`attachments` are under no chain and are trimmed. The first column of each projection is its key.

What `attachments` holds is let go in time; the row has the hash. A body is there before its row is, in the same
transaction. An open question's is never let go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from toolgate.core.named_tuples import NamedTuple

if TYPE_CHECKING:
    from toolgate.storage.port import Filter

VERSION = 4

JOURNAL = (
    "seq", "at", "kind", "call", "persona", "tool", "conversation", "ref", "claim", "key", "body", "prev", "hash", "mac",
)  # fmt: skip
PROJECTIONS: dict[str, tuple[str, ...]] = {
    "questions": ("id", "seq", "state", "expires"),
    "grants": ("id", "seq", "uses", "expires"),
    "pauses": ("persona", "seq"),
    "doubts": ("call", "seq"),
    "claims": ("scope", "call", "digest", "state", "seq", "expires"),
}
IN_MEMORY = ("questions", "grants", "pauses", "doubts")
"""Every process holds them and follows the journal; the questions only once it needs one. Claims are looked up one by
one."""

HEAD = ("seq", "at", "key", "hash", "mac", "live", "questions")
NUMBERS = frozenset({"seq", "at", "key", "expires", "uses"})
BLOCK = 2048
"""Events in a block whose sum is kept. Part of the tables: sums of other blocks mean something else."""
SUMS = (
    f"SELECT number, sums.hash, sums.body FROM sums JOIN journal ON seq = (number + 1) * {BLOCK} "
    "AND journal.hash = sums.hash WHERE number >= {0} AND number < {1} ORDER BY number"
)
KEEP_SUM = (
    "INSERT INTO sums (number, hash, body) VALUES ({0}, {1}, {2}) "
    "ON CONFLICT (number) DO UPDATE SET hash = excluded.hash, body = excluded.body"
)
EMPTY_HASH = "0" * 64


def marks(mark: str, count: int) -> list[str]:
    """So many placeholders; `mark` is `?` (SQLite) or `$` (PostgreSQL, numbered)."""
    return ["?" if mark == "?" else f"${number}" for number in range(1, count + 1)]


def upsert(table: str) -> str:
    columns = PROJECTIONS[table]
    updates = ", ".join(f"{name} = excluded.{name}" for name in columns[1:])
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}) "
        f"ON CONFLICT ({columns[0]}) DO UPDATE SET {updates}"
    )


def drop(table: str) -> str:
    return f"DELETE FROM {table} WHERE {PROJECTIONS[table][0]} = ?"


# Databases have no NUL in their texts, and PostgreSQL refuses a whole document for one: it is U+FFFD to a filter.
# Escaped backslashes go first, so that a backslash followed by u0000 stays what it is.
_JSON = r"replace(replace(body, '\\', '\u005c'), '\u0000', '\ufffd')"


def binding(values: list[Any], mark: str) -> Callable[[Any], str]:
    """Puts one more value among these, and gives its placeholder."""

    def bind(value: Any) -> str:
        values.append(value.replace("\0", "\ufffd") if isinstance(value, str) else value)
        return "?" if mark == "?" else f"${len(values)}"

    return bind


def select_rows(wanted: Filter, mark: str) -> tuple[str, list[Any]]:
    """SQL and its values."""
    values: list[Any] = []
    bind = binding(values, mark)
    tests = [f"{column} = {bind(value)}" for column, value in _equalities(wanted)]
    # said once more, because only then the partial indexes are known to apply
    tests += [f"{name} <> ''" for name in ("call", "ref") if getattr(wanted, name)]
    tests += [f"{column} {op} {bind(value)}" for column, op, value in _ranges(wanted)]
    if wanted.about:
        part = wanted.about.replace("!", "!!").replace("%", "!%").replace("_", "!_")
        places = ((name, text) for name in ("call", "ref") for text in (f"{part}%", f"%{part}"))
        tests.append("(" + " OR ".join(f"{name} LIKE {bind(text)} ESCAPE '!'" for name, text in places) + ")")
    if wanted.kinds:
        tests.append(f"kind IN ({', '.join(bind(kind) for kind in wanted.kinds)})")
    for name, value in wanted.body.items():
        extract = (
            f"json_extract({_JSON}, {bind('$.' + name)})"
            if mark == "?"
            else f"({_JSON}::json ->> {bind(name)}::text)"
        )
        tests.append(f"{extract} = {bind(value)}")
    where = f"WHERE {' AND '.join(tests)} " if tests else ""
    order = "DESC" if wanted.newest_first else "ASC"
    sql = f"SELECT {', '.join(JOURNAL)} FROM journal {where}ORDER BY seq {order} LIMIT {bind(wanted.limit)}"
    return sql, values


def _equalities(wanted: Filter) -> list[tuple[str, str]]:
    names = ("call", "persona", "tool", "conversation", "ref")
    return [(name, getattr(wanted, name)) for name in names if getattr(wanted, name)]


def _ranges(wanted: Filter) -> list[tuple[str, str, int]]:
    pairs = (
        ("seq", ">", wanted.after),
        ("seq", "<", wanted.before),
        ("at", ">=", wanted.since),
        ("at", "<", wanted.until),
    )
    return [(column, op, value) for column, op, value in pairs if value]


# --- attachments: whole bodies of events that are too long for their rows ------------------------------------

_FREE = "seq NOT IN (SELECT seq FROM questions)"
ATTACHED = "SELECT body FROM attachments WHERE seq = {}"
ATTACHED_DUE = f"DELETE FROM attachments WHERE expires <= {{}} AND {_FREE}"
ATTACHED_KEPT = (
    "SELECT persona, COUNT(*), CAST(SUM(bytes) AS BIGINT) FROM attachments GROUP BY persona ORDER BY persona"
)
GROWN = (
    "SELECT persona, COUNT(*), CAST(SUM(LENGTH(body) + LENGTH(hash) * 3) AS BIGINT) FROM journal "
    "WHERE {} GROUP BY persona ORDER BY persona"
)
"""A row's size, nearly: its body, hash, link and seal."""
_OVER = f"""
  DELETE FROM attachments WHERE seq IN (SELECT seq FROM (
    SELECT seq, SUM(bytes) OVER (ORDER BY seq DESC) AS total FROM attachments WHERE persona = {{}} AND {_FREE}
  ) AS mine WHERE total > CAST({{}} AS BIGINT))"""


class Attachment(NamedTuple):
    seq: int
    """The event whose body this is."""
    persona: str
    expires: int
    bytes: int
    body: str


class Grown(NamedTuple):
    """What one persona brought into the journal."""

    persona: str
    events: int
    size: int


class AttachedBytes(NamedTuple):
    """What is kept for one persona."""

    persona: str
    events: int
    size: int


def attach(mark: str) -> str:
    columns = Attachment._fields
    return f"INSERT INTO attachments ({', '.join(columns)}) VALUES ({', '.join(marks(mark, len(columns)))})"


def trim_attached(
    attached: Sequence[Attachment], now: int, budget: int, mark: str
) -> list[tuple[str, tuple[int | str, ...]]]:
    """What goes when something comes: whatever is due, and the oldest of a persona that has more than its budget."""
    first, second = marks(mark, 2)
    over = _OVER.format(first, second)
    personas = dict.fromkeys(one.persona for one in attached)
    return [(ATTACHED_DUE.format(first), (now,)), *((over, (persona, budget)) for persona in personas)]
