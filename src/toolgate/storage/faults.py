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
    ("unique constraint failed: journal", LedgerBroken, "the journal has events that its head does not know", "run `toolgate ledger verify`; somebody changed the database"),
    ("append-only", LedgerBroken, "the journal is append-only", "nothing may change or remove its rows"),
)  # fmt: skip


def from_sqlite(error: sqlite3.Error, where: str) -> CallError:
    text = str(error).lower()
    for needle, kind, message, fix in _SQLITE:
        if needle in text:
            return kind(f"{message} ({where}): {error}", fix)
    return Unavailable(f"the database failed ({where}): {error}", "see `toolgate doctor`")


_RETRY = "try again"
_POSTGRES: dict[str, tuple[type[CallError], str, str]] = {
    "53100": (Unavailable, "the disk of the database is full", "free some space; nothing that was committed is lost"),
    "53200": (Unavailable, "the database is out of memory", _RETRY),
    "53300": (Unavailable, "the database has no connection left", "raise max_connections, or close other processes"),
    "25006": (Unavailable, "the database is read-only", "connect to the primary, or end its recovery"),
    "28000": (Unavailable, "the database does not let this user in", "check the user and pg_hba.conf"),
    "28P01": (Unavailable, "the password of the database is wrong", "correct it in ledger.database"),
    "3D000": (Unavailable, "there is no such database", "create it, or correct its name in ledger.database"),
    "42P01": (Unavailable, "a table of the ledger is missing", "restore a backup; nothing is created over what is left"),
    "42501": (Unavailable, "this user may not do that in the database", "give it the right to create and use tables there"),
    "55P03": (Unavailable, "the ledger is locked by another process", "try again; pg_stat_activity shows who holds it"),
    "57014": (Unavailable, "the database took too long", _RETRY),
    "57P03": (Unavailable, "the database is starting up or shutting down", _RETRY),
    "40001": (Unavailable, "other processes write at the same time", _RETRY),
    "40P01": (Unavailable, "other processes write at the same time", _RETRY),
    "P0001": (LedgerBroken, "the database refused it", "nothing may change or remove rows of the journal"),
    "23505": (LedgerBroken, "the journal has events that its head does not know", "run `toolgate ledger verify`; somebody changed the database"),
    "XX001": (LedgerBroken, "the database is damaged", "keep a copy, then restore a backup"),
    "XX002": (LedgerBroken, "an index of the database is damaged", "REINDEX it, then run `toolgate ledger verify`"),
}  # fmt: skip
_GONE = ("08", "57P01", "57P02", "57P05", "25P03")
"""The connection is broken or was ended by the server."""


def from_postgres(error: Exception, where: str) -> CallError:
    state = _state(error)
    if state in _POSTGRES:
        kind, message, fix = _POSTGRES[state]
        return kind(f"{message} ({where}): {error}", fix)
    if isinstance(error, TimeoutError):
        return Unavailable(
            f"the database did not answer in time ({where})", "check that it runs; then try again"
        )
    if isinstance(error, OSError) and not state:
        what = error.strerror or str(error) or type(error).__name__
        return Unavailable(
            f"the database cannot be reached ({where}): {what}",
            "check that it runs and that the address is right",
        )
    if is_lost(error):
        return Unavailable(f"the connection to the database was lost ({where}): {error}", _RETRY)
    return Unavailable(f"the database failed ({where}): {error}", "see `toolgate doctor`")


def is_lost(error: Exception) -> bool:
    """Whether the connection is gone or in no known state, so that nobody can say what became of the statement."""
    state = _state(error)
    return state.startswith(_GONE) if state else True


def is_passing(error: Exception) -> bool:
    """Whether the same again may well succeed, and nothing has been written."""
    return _state(error) in ("40001", "40P01") or (is_lost(error) and not isinstance(error, TimeoutError))


def _state(error: Exception) -> str:
    """The SQLSTATE, by name rather than by class: the driver is an extra."""
    return str(getattr(error, "sqlstate", None) or "")
