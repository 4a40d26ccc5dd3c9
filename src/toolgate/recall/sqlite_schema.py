"""SQLite schema of recall, and the pieces of SQL that its statements are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from toolgate.recall.store import Filters

VARIABLES = 500
"""Values in one statement."""
SCHEMA = """
CREATE TABLE recall_scopes (number INTEGER PRIMARY KEY, scope TEXT NOT NULL UNIQUE);
CREATE TABLE recall_passages (
    number INTEGER PRIMARY KEY AUTOINCREMENT, scope INTEGER NOT NULL REFERENCES recall_scopes, id TEXT NOT NULL,
    part INTEGER NOT NULL, text TEXT NOT NULL, terms TEXT NOT NULL, hash TEXT NOT NULL, content_hash TEXT NOT NULL, kind TEXT NOT NULL,
    tags TEXT NOT NULL, at REAL, period TEXT NOT NULL, conversation TEXT NOT NULL, place INTEGER,
    UNIQUE (scope, id, part));
CREATE INDEX recall_by_hash ON recall_passages (scope, hash);
CREATE INDEX recall_by_place ON recall_passages (scope, conversation, place) WHERE conversation <> '';
CREATE TABLE recall_vectors (
    number INTEGER PRIMARY KEY AUTOINCREMENT, passage INTEGER NOT NULL REFERENCES recall_passages ON DELETE CASCADE,
    scope INTEGER NOT NULL, model TEXT NOT NULL, vector BLOB NOT NULL, UNIQUE (passage, model));
CREATE INDEX recall_vectors_of ON recall_vectors (scope, model, number);
CREATE TABLE recall_removed (number INTEGER PRIMARY KEY AUTOINCREMENT, scope INTEGER NOT NULL, passage INTEGER NOT NULL);
CREATE INDEX recall_removed_of ON recall_removed (scope, number);
CREATE TRIGGER recall_log_removal AFTER DELETE ON recall_passages BEGIN
    INSERT INTO recall_removed (scope, passage) VALUES (OLD.scope, OLD.number);
END;
CREATE TABLE recall_usage (number INTEGER PRIMARY KEY, scope TEXT NOT NULL, results INTEGER NOT NULL,
    average_score REAL NOT NULL, milliseconds REAL NOT NULL, degraded INTEGER NOT NULL, at REAL NOT NULL);
CREATE TABLE recall_speakers (scope INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY (scope, name)) WITHOUT ROWID;
"""


def match(terms: Sequence[str]) -> str:
    """Any of these words. Each is quoted, so that nothing in it is an operator."""
    return " OR ".join(f'"{term.replace(chr(34), "")}"' for term in terms)


def where(filters: Filters) -> tuple[str, list[Any]]:
    parts: list[str] = []
    values: list[Any] = []
    if filters.kinds:
        parts.append(f"p.kind IN ({marks(filters.kinds)})")
        values += filters.kinds
    for tag in filters.tags:
        parts.append("EXISTS (SELECT 1 FROM json_each(p.tags) WHERE value = ?)")
        values.append(tag)
    if filters.since is not None:
        parts.append("p.at >= ?")
        values.append(filters.since.timestamp())
    if filters.until is not None:
        parts.append("p.at < ?")
        values.append(filters.until.timestamp())
    if filters.period:
        parts.append("substr(p.period, 1, ?) = ?")
        values += [len(filters.period), filters.period]
    return "".join(f" AND {part}" for part in parts), values


def marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def batches(values: Sequence[Any], most: int = VARIABLES) -> Iterator[Sequence[Any]]:
    for at in range(0, len(values), most):
        yield values[at : at + most]
