"""One builder for the readers' SELECT, so that every dialect filters alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolgate.storage import schema

if TYPE_CHECKING:
    from toolgate.storage.port import Filter

# Databases have no NUL in their texts, and PostgreSQL refuses a whole document for one: it is U+FFFD to a filter.
# Escaped backslashes go first, so that a backslash followed by u0000 stays what it is.
_JSON = r"replace(replace(body, '\\', '\u005c'), '\u0000', '\ufffd')"


def select_rows(wanted: Filter, mark: str) -> tuple[str, list[Any]]:
    """SQL and its values; `mark` is `?` (SQLite) or `$` (PostgreSQL, numbered)."""
    values: list[Any] = []

    def bind(value: Any) -> str:
        values.append(value.replace("\0", "\ufffd") if isinstance(value, str) else value)
        return "?" if mark == "?" else f"${len(values)}"

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
    sql = f"SELECT {', '.join(schema.JOURNAL)} FROM journal {where}ORDER BY seq {order} LIMIT {bind(wanted.limit)}"
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
