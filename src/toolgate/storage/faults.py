"""The one seam where database errors become ours: what happened, and what to do about it."""

from __future__ import annotations

import sqlite3

from toolgate.core.errors import CallError, LedgerBroken, Unavailable

_SQLITE: tuple[tuple[str, type[CallError], str, str], ...] = (
    ("locked", Unavailable, "the database is locked by another process", "try again; if it stays locked, see `toolgate doctor` for who holds it"),
    ("busy", Unavailable, "the database is busy", "try again"),
    ("readonly", Unavailable, "the database is read-only", "make the .toolgate directory and its files writable for this user"),
    ("read-only", Unavailable, "the database is read-only", "make the .toolgate directory and its files writable for this user"),
    ("full", Unavailable, "the disk is full", "free some space; nothing that was committed is lost"),
    ("disk i/o", Unavailable, "the disk reported an error", "check the disk; nothing that was committed is lost"),
    ("malformed", LedgerBroken, "the database file is damaged", "keep a copy, then restore a backup; `toolgate ledger verify` says how far it is intact"),
    ("not a database", LedgerBroken, "the database file is not a database", "restore it from a backup, or move it away to start a new ledger"),
    ("unable to open", Unavailable, "the database cannot be opened", "check that the .toolgate directory exists and is writable"),
    ("append-only", LedgerBroken, "the journal is append-only", "nothing may change or remove its rows"),
)  # fmt: skip


def from_sqlite(error: sqlite3.Error, where: str = "") -> CallError:
    text = str(error).lower()
    place = f" ({where})" if where else ""
    for needle, kind, message, fix in _SQLITE:
        if needle in text:
            return kind(f"{message}{place}: {error}", fix)
    return Unavailable(f"the database failed{place}: {error}", "see `toolgate doctor`")
