"""MemoryStore: the items in their tables. Every write is one statement, so that whoever dies leaves all of it or nothing.

A write names the call that makes it. So a call can be asked about afterwards (`happened`) and taken back (`restore`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolgate.core.errors import Conflict
from toolgate.features.memory.items import NAMES, MemoryItem
from toolgate.features.memory.schema import COLUMNS
from toolgate.features.memory.verdicts import MemoryLink
from toolgate.storage.tables import PostgresTables, Statement, Tables

assert set(NAMES) == set(COLUMNS)
_ALL = ", ".join(COLUMNS)
_FOLLOWS = {"id", "scope", "version", "created_at", "changed_at", "reason"}
_BACK = tuple(name for name in COLUMNS if name not in _FOLLOWS)
"""What a version brings back when the one after it is undone."""
_PLACE = "(SELECT COALESCE(MAX(place), -1) + 1 FROM memory_items WHERE scope = ? AND conversation = ?)"


@dataclass(frozen=True)
class ItemFilter:
    """Which items; empty means any."""

    scope: str = ""
    store: str = ""
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    subject: str = ""
    conversation: str | None = None
    period: str = ""
    since: int | None = None
    until: int | None = None
    states: tuple[str, ...] = ("kept",)
    call: str = ""
    after: tuple[int, str] | None = None
    """The last one of the page before, by its time and id: the newest come first."""
    oldest_first: bool = False
    limit: int = 100


@dataclass(frozen=True)
class Writer:
    """Whose write it is."""

    call: str
    persona: str
    now: int
    reason: str = ""


class MemoryStore:
    def __init__(self, tables: Tables) -> None:
        self.tables = tables

    async def insert(self, items: Sequence[MemoryItem]) -> list[MemoryItem]:
        """All or none of those that are new; an id or an equal text that is there stays as it is. The place of one is the
        next one of its conversation, if it says none."""
        found = await self.tables.transaction([_insertion(one) for one in items])
        return [MemoryItem.of(row) for rows in found for row in rows]

    async def replace(self, item: MemoryItem, expected: int) -> bool:
        """Put the item in the place of its version `expected`; whether that was still the one."""
        row = item.row()
        names = [name for name in COLUMNS if name not in ("id", "scope", "created_at")]
        sets = ", ".join(f"{name} = ?" for name in names)
        touched = await self.tables.execute(
            f"UPDATE memory_items SET {sets} WHERE id = ? AND scope = ? AND version = ?",
            *(row[name] for name in names), item.id, item.scope, expected,
        )  # fmt: skip
        return touched == 1

    async def equal_to(self, item: MemoryItem) -> str:
        """Another one that says the same in the same place; empty if there is none."""
        same = ("scope", "store", "type", "period", "conversation", "digest")
        rows = await self.tables.fetch(
            f"SELECT id FROM memory_items WHERE {' AND '.join(f'{name} = ?' for name in same)} AND state = 'kept'"
            " AND id <> ? LIMIT 1",
            *(getattr(item, name) for name in same), item.id,
        )  # fmt: skip
        return str(rows[0]["id"]) if rows else ""

    async def set_state(
        self, ids: Sequence[str], state: str, was: Collection[str], op: str, by: Writer, versions: Sequence[int] = ()
    ) -> list[str]:  # fmt: skip
        """Those that were in such a state. With versions, one for each id, all of them or none."""
        fits = f"id IN ({_marks(ids)}) AND state IN ({_marks(was)})"
        values: list[Any] = [*ids, *was]
        if versions:
            fits += f" AND id || ':' || version IN ({_marks(ids)})"
            values += [f"{one}:{version}" for one, version in zip(ids, versions, strict=True)]
            fits += f" AND (SELECT COUNT(*) FROM memory_items WHERE {fits}) = ?"
            values += [*values, len(ids)]
        found = await self.tables.fetch(
            f"UPDATE memory_items SET state = ?, {_BY} WHERE {fits} RETURNING id",
            state, by.now, by.persona, by.call, op, by.reason, *values,
        )  # fmt: skip
        return [row["id"] for row in found]

    async def purge(self, ids: Sequence[str], by: Writer) -> list[str]:
        """The texts, the versions before and whatever was written about them. What supersedes what stays known."""
        found = await self.tables.fetch(
            "UPDATE memory_items SET state = 'purged', content = '', digest = id, subject = '', tags = '[]',"
            f" evidence = '[]', flags = '[]', sources = '[]', {_BY} WHERE id IN ({_marks(ids)}) AND state <> 'purged'"
            " RETURNING id",
            by.now, by.persona, by.call, "purge", "", *ids,
        )  # fmt: skip
        await self.tables.execute(f"DELETE FROM memory_usage WHERE id IN ({_marks(ids)})", *ids)
        return [row["id"] for row in found]

    async def wipe(self) -> None:
        """What was deleted stays readable in free pages of the file, and in its log, until it is written anew."""
        if isinstance(self.tables, PostgresTables):
            await self.tables.execute("VACUUM memory_items, memory_history")
        else:
            indexes = await self.tables.fetch("SELECT name FROM sqlite_master WHERE sql LIKE '%USING fts5(%'")
            for (
                one
            ) in indexes:  # a word index keeps the words of what was deleted, until its parts are merged
                await self.tables.execute(f"INSERT INTO {one['name']}({one['name']}) VALUES ('optimize')")
            await self.tables.execute("VACUUM")
            await self.tables.fetch("PRAGMA wal_checkpoint(TRUNCATE)")

    async def restore(self, call: str, now: int, note: str = "") -> list[str]:
        """Take back what a call did: what it stored is undone, what it changed is as it was before, made by whoever had
        made that. All or nothing."""
        await self._check_unmoved(call)
        why = f"{call} was taken back" + (f"; {note}" if note else "")
        done = await self.tables.fetch(
            "UPDATE memory_items SET state = 'undone', version = version + 1, changed_at = ?, reason = ? WHERE call = ?"
            " AND op IN ('store', 'import') AND state = 'kept' RETURNING id",
            now, why, call,
        )  # fmt: skip
        back = ", ".join(f"h.{name}" for name in _BACK)
        done += await self.tables.fetch(
            f"UPDATE memory_items SET ({', '.join(_BACK)}) = (SELECT {back} FROM memory_history AS h WHERE h.id ="
            " memory_items.id AND h.version = COALESCE((SELECT MIN(x.version) FROM memory_history AS x WHERE x.id ="
            " memory_items.id AND x.call = ?), memory_items.version) - 1), version = version + 1, changed_at = ?,"
            " reason = ? WHERE call = ? AND op IN ('update', 'forget') RETURNING id",
            call, now, why, call,
        )  # fmt: skip
        return [row["id"] for row in done]

    async def _check_unmoved(self, call: str) -> None:
        moved = await self.tables.fetch(
            "SELECT i.id, i.call, i.op, i.state FROM memory_history AS h JOIN memory_items AS i ON i.id = h.id"
            " WHERE h.call = ? AND i.call <> h.call LIMIT 3",
            call,
        )
        if moved:
            one = moved[0]
            raise Conflict(
                f"{one['id']} was changed since, by {one['call']} ({one['op']}); nothing was touched",
                f"undo that first: `toolgate undo {one['call']}`",
            )
        gone = await self.tables.fetch(
            "SELECT id FROM memory_items WHERE state = 'purged' AND call = ? LIMIT 1", call
        )
        if gone:
            raise Conflict(f"{gone[0]['id']} is purged: its text is gone", "there is nothing to undo")
        twice = await self.tables.fetch(
            "SELECT i.id, o.id AS other FROM memory_items AS i JOIN memory_items AS o ON o.scope = i.scope AND"
            " o.store = i.store AND o.type = i.type AND o.period = i.period AND o.conversation = i.conversation"
            " AND o.digest = i.digest AND o.state = 'kept' AND o.id <> i.id WHERE i.call = ? AND i.op = 'forget' LIMIT 1",
            call,
        )
        if twice:
            raise Conflict(
                f"{twice[0]['id']} was stored again meanwhile, as {twice[0]['other']}",
                "forget that one first",
            )

    async def happened(self, call: str) -> bool:
        rows = await self.tables.fetch(
            "SELECT 1 AS yes FROM memory_items WHERE call = ? UNION ALL"
            " SELECT 1 FROM memory_history WHERE call = ? LIMIT 1",
            call, call,
        )  # fmt: skip
        return bool(rows)

    async def get(self, ids: Sequence[str], scope: str = "") -> list[MemoryItem]:
        """In the order of the ids; those that are not there are left out. Only an empty scope means any."""
        found: dict[str, MemoryItem] = {}
        for start in range(0, len(ids), _BATCH):
            part = ids[start : start + _BATCH]
            rows = await self.tables.fetch(
                f"SELECT {_ALL} FROM memory_items WHERE id IN ({_marks(part)}) AND (scope = ? OR ? = '')",
                *part, scope, scope,
            )  # fmt: skip
            found |= {row["id"]: MemoryItem.of(row) for row in rows}
        return [found[one] for one in ids if one in found]

    async def find(self, wanted: ItemFilter) -> list[MemoryItem]:
        sql, values = _where(wanted)
        order = "at, id" if wanted.oldest_first else "at DESC, id DESC"
        rows = await self.tables.fetch(
            f"SELECT {_ALL} FROM memory_items WHERE {sql} ORDER BY {order} LIMIT ?", *values, wanted.limit
        )
        return [MemoryItem.of(row) for row in rows]

    async def count(self, wanted: ItemFilter) -> int:
        sql, values = _where(replace(wanted, after=None))
        return int(
            (await self.tables.fetch(f"SELECT COUNT(*) AS n FROM memory_items WHERE {sql}", *values))[0]["n"]
        )

    async def newest(self, scope: str) -> int:
        """When anything was changed last."""
        rows = await self.tables.fetch(
            "SELECT MAX(changed_at) AS last FROM memory_items WHERE scope = ?", scope
        )
        return int(rows[0]["last"] or 0)

    async def history(self, ident: str) -> list[MemoryItem]:
        """The versions before the present one, the newest first."""
        rows = await self.tables.fetch(
            f"SELECT {_ALL} FROM memory_history WHERE id = ? ORDER BY version DESC", ident
        )
        return [MemoryItem.of(row) for row in rows]

    async def links(self, ids: Sequence[str]) -> dict[str, list[MemoryLink]]:
        """Of each item, in both directions, with what is known of the other end."""
        found: dict[str, list[MemoryLink]] = {one: [] for one in ids}
        for start in range(0, len(ids), _BATCH):
            part = ids[start : start + _BATCH]
            for mine, other in (("target", "source"), ("source", "target")):
                rows = await self.tables.fetch(
                    f"SELECT l.source, l.kind, l.target, i.state, i.trust, i.valid_from, EXISTS (SELECT 1 FROM"
                    " memory_links AS m JOIN memory_items AS s ON s.id = m.source WHERE m.kind = 'supersedes' AND"
                    f" m.target = i.id AND s.state <> 'undone' AND {_rank('s')} >= {_rank('i')}) AS retired FROM memory_links AS l JOIN memory_items AS i"
                    f" ON i.id = l.{other} JOIN memory_items AS me ON me.id = l.{mine} AND me.scope = i.scope WHERE l.{mine} IN ({_marks(part)}) AND l.kind <> 'sources'",
                    *part,
                )  # fmt: skip
                for row in rows:
                    found[row[mine]].append(MemoryLink(**dict(row, retired=bool(row["retired"]))))
        return found

    async def derived(self, ids: Sequence[str]) -> list[str]:
        """Those of which any version was made of these, and those that were made of them: one that was written anew
        without them still quotes them in its history, and so may whatever was made of it meanwhile. Of the same user."""
        scopes = {one.scope for one in await self.get(ids)}
        made: dict[str, set[str]] = {}
        for table in ("memory_items", "memory_history"):
            rows = await self.tables.fetch(
                f"SELECT id, scope, sources FROM {table} WHERE sources <> '[]' AND state <> 'purged'"
            )
            for row in (row for row in rows if row["scope"] in scopes):
                for source in json.loads(row["sources"]):
                    made.setdefault(source, set()).add(row["id"])
        found: dict[str, None] = {}
        waiting = list(ids)
        while waiting:
            waiting = sorted({one for source in waiting for one in made.get(source, ())} - {*found, *ids})
            found |= dict.fromkeys(waiting)
        return list(found)

    async def quoting(self, ids: Sequence[str]) -> list[str]:
        """Others of the same user of which a version holds the whole text of a version of one of these."""
        found: dict[str, None] = {}
        texts = {
            (row["scope"], " ".join(row["content"].casefold().split()))
            for table in ("memory_items", "memory_history")
            for row in await self.tables.fetch(
                f"SELECT scope, content FROM {table} WHERE id IN ({_marks(ids)})", *ids
            )
        }
        for table in ("memory_items", "memory_history"):
            for scope in {scope for scope, _ in texts}:
                wanted = [text for one, text in texts if one == scope and len(text) >= _SHORTEST_QUOTE]
                rows = await self.tables.fetch(f"SELECT id, content FROM {table} WHERE scope = ?", scope)
                for row in rows:
                    said = " ".join(row["content"].casefold().split())
                    if row["id"] not in ids and any(text in said for text in wanted):
                        found[row["id"]] = None
        return list(found)

    async def unindexed(self, limit: int = 500) -> list[MemoryItem]:
        rows = await self.tables.fetch(
            f"SELECT {_ALL} FROM memory_items WHERE indexed <> version ORDER BY id LIMIT ?", limit
        )
        return [MemoryItem.of(row) for row in rows]

    async def to_index(self, ids: Sequence[str]) -> None:
        """They are to be put into the index once more."""
        await self.tables.execute(f"UPDATE memory_items SET indexed = 0 WHERE id IN ({_marks(ids)})", *ids)

    async def indexed(self, items: Sequence[MemoryItem]) -> None:
        """The index has these versions. One that was changed meanwhile is to be put there once more."""
        for version in sorted({item.version for item in items}):
            ids = [item.id for item in items if item.version == version]
            for start in range(0, len(ids), _BATCH):
                part = ids[start : start + _BATCH]
                await self.tables.execute(
                    f"UPDATE memory_items SET indexed = CASE WHEN version = ? THEN version ELSE 0 END"
                    f" WHERE id IN ({_marks(part)})",
                    version, *part,
                )  # fmt: skip


_BATCH = 500
_SHORTEST_QUOTE = 12
"""Characters: whatever is shorter stands in many texts by chance."""
_BY = "version = version + 1, changed_at = ?, persona = ?, call = ?, op = ?, reason = ?"


def _rank(table: str) -> str:
    """Trust as a number: what supersedes with too little of it retires nothing."""
    return f"(CASE {table}.trust WHEN 'high' THEN 2 WHEN 'medium' THEN 1 ELSE 0 END)"


def _insertion(item: MemoryItem) -> Statement:
    row = item.row()
    marks = ["?"] * len(COLUMNS)
    values = [row[name] for name in COLUMNS]
    if item.conversation and item.place is None:
        at = COLUMNS.index("place")
        marks[at] = _PLACE
        values[at : at + 1] = [item.scope, item.conversation]
    sql = f"INSERT INTO memory_items ({_ALL}) VALUES ({', '.join(marks)}) ON CONFLICT DO NOTHING RETURNING {_ALL}"
    return Statement(sql, values)


def _marks(values: Collection[Any]) -> str:
    return ", ".join("?" * len(values))


def _where(wanted: ItemFilter) -> tuple[str, list[Any]]:
    parts: list[str] = ["1 = 1"]
    values: list[Any] = []

    def add(sql: str, *given: Any) -> None:
        parts.append(sql)
        values.extend(given)

    for name in ("scope", "store", "subject", "call"):
        if given := getattr(wanted, name):
            add(f"{name} = ?", given)
    if wanted.states:
        add(f"state IN ({_marks(wanted.states)})", *wanted.states)
    if wanted.types:
        add(f"type IN ({_marks(wanted.types)})", *wanted.types)
    if wanted.conversation is not None:
        add("conversation = ?", wanted.conversation)
    for tag in wanted.tags:
        add("tags LIKE ? ESCAPE '~'", f"%{_like(tag)}%")
    if wanted.period:
        add("period LIKE ?", wanted.period + "%")
    if wanted.since is not None:
        add("at >= ?", wanted.since)
    if wanted.until is not None:
        add("at < ?", wanted.until)
    if wanted.after is not None:
        add("(at, id) > (?, ?)" if wanted.oldest_first else "(at, id) < (?, ?)", *wanted.after)
    return " AND ".join(parts), values


def _like(tag: str) -> str:
    """The tag as it stands in the list, for LIKE."""
    text = json.dumps(tag)
    return text.replace("~", "~~").replace("%", "~%").replace("_", "~_")
