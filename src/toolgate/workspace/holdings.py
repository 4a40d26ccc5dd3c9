"""Who holds which images: the accounts behind the budgets.

A *holder* is a call, or a proposal, of one persona. What it holds counts for its persona, once for each content: an image
that several personas hold counts for each of them, and is gone when nobody holds it. Sums are kept in the same transaction
as what they sum up, so that no process can leave them wrong, and no call pays for what earlier ones have kept.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from toolgate.core.errors import Unavailable
from toolgate.core.status import FileLook

UNKEPT, SCRATCH, PLAIN, ASKED = range(4)
"""How much a holder is worth: nothing once its call is over, less, more, and what a human was asked about."""
RANKS = (UNKEPT, SCRATCH, PLAIN, ASKED)
ENTRY = 1024
"""Bytes that a holder counts besides its images, so that there is no end of those that hold nothing new."""
BUSY_S = 30.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS holders (
  id TEXT PRIMARY KEY, persona TEXT NOT NULL, rank INTEGER NOT NULL, at INTEGER NOT NULL, until INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_age ON holders (persona, rank, at);
CREATE INDEX IF NOT EXISTS by_end ON holders (rank, until);
CREATE TABLE IF NOT EXISTS held (id TEXT, hash TEXT, size INTEGER NOT NULL, PRIMARY KEY (id, hash)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS owned (
  hash TEXT, persona TEXT, size INTEGER NOT NULL, n0 INTEGER NOT NULL DEFAULT 0, n1 INTEGER NOT NULL DEFAULT 0,
  n2 INTEGER NOT NULL DEFAULT 0, n3 INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (hash, persona)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spent (
  persona TEXT, rank INTEGER, bytes INTEGER NOT NULL, PRIMARY KEY (persona, rank)
) WITHOUT ROWID;
"""
Sizes = Mapping[str, int]
"""Hash and length of each image."""
Place = tuple[int, int, int]
"""Device and inode."""


class Holdings:
    def __init__(self, file: Path) -> None:
        self._look = FileLook(file)
        self._writer, self._reader = _Connection(file), _Connection(file)
        """Two, so that whoever only looks, on the event loop, does not wait for who writes."""

    def close(self) -> None:
        self._writer.close()
        self._reader.close()

    @contextmanager
    def writing(self) -> Iterator[Accounts]:
        """All of it or nothing, and nobody else meanwhile."""
        with self._writer.taken() as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                accounts = Accounts(database)
                yield accounts
                accounts.flush()
                database.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk has ended it already
                    database.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[Accounts]:
        with self._reader.taken() as database:
            yield Accounts(database)

    def place(self) -> Place | None:
        """Which file it is; another one knows nothing of what was counted."""
        return _place(self._look)


class _Connection:
    """Opened when it is first needed, and again where the file was taken away."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._alone = threading.Lock()
        self._opened: sqlite3.Connection | None = None
        self._look = FileLook(file)
        self._place: Place | None = None

    def close(self) -> None:
        with self._alone:
            self._close()

    @contextmanager
    def taken(self) -> Iterator[sqlite3.Connection]:
        with self._alone:
            try:
                yield self._open()
            except sqlite3.Error as error:
                self._close()  # whoever mends the file need not open the gate again
                full = "the disk is full" if "full" in str(error) else str(error)
                raise Unavailable(
                    f"the accounts of what is kept for undo cannot be used: {full}",
                    f"free some space, or move {self._file} away if it is damaged: it is made anew, and what is kept stays",
                    certain=True,
                ) from error

    def _close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _open(self) -> sqlite3.Connection:
        if self._place != _place(self._look):  # it was taken away
            self._close()
        if self._opened is None:
            os.close(os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
            made = sqlite3.connect(self._file, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
            # A power cut may cost the last entries, never their consistency; the images themselves are synced.
            made.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; {_SCHEMA}")
            self._opened, self._place = made, _place(self._look)
        return self._opened


def _place(look: FileLook) -> Place | None:
    try:
        status = look()
    except FileNotFoundError:
        return None
    return *status.device, status.inode


class Accounts:
    """Inside one transaction."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        rows = database.execute("SELECT persona, rank, bytes FROM spent").fetchall()
        self._spent: dict[tuple[str, int], int] = {(persona, rank): size for persona, rank, size in rows}
        """A row for each persona and rank: few enough to be read at once."""
        self._altered: set[tuple[str, int]] = set()
        self._owned: dict[tuple[str, str], list[int]] = {}
        """What was read or written of `owned`: nobody else changes it meanwhile."""

    def flush(self) -> None:
        rows = [(*key, self._spent[key]) for key in self._altered]
        self._database.executemany("INSERT OR REPLACE INTO spent VALUES (?, ?, ?)", rows)

    def add(self, ident: str, persona: str, rank: int, at: int, until: int, sizes: Sizes) -> None:
        holder = (ident, persona, rank, at, until)
        if (
            self._database.execute("INSERT OR IGNORE INTO holders VALUES (?, ?, ?, ?, ?)", holder).rowcount
            != 1
        ):
            self.remove(ident)
            self._do("INSERT INTO holders VALUES (?, ?, ?, ?, ?)", *holder)
        self._spend(persona, rank, ENTRY)
        held = [(ident, digest, size) for digest, size in sizes.items()]
        self._database.executemany("INSERT INTO held VALUES (?, ?, ?)", held)
        for digest, size in sizes.items():
            self._count(digest, persona, size, rank, 1)

    def remove(self, ident: str) -> list[str]:
        """The hashes that nobody holds from now on."""
        found = self._row("SELECT persona, rank FROM holders WHERE id = ?", ident)
        if found is None:
            return []
        persona, rank = found
        self._spend(persona, rank, -ENTRY)
        free = []
        for digest, size in self._all("SELECT hash, size FROM held WHERE id = ?", ident):
            self._count(digest, persona, size, rank, -1)
            if self._row("SELECT 1 FROM owned WHERE hash = ? LIMIT 1", digest) is None:
                free.append(digest)
        self._do("DELETE FROM held WHERE id = ?", ident)
        self._do("DELETE FROM holders WHERE id = ?", ident)
        return free

    def expire(self, now: int, most: int = 100) -> None:
        """What was kept for its time is worth no more than scratch when that is up."""
        over = self._all(
            "SELECT id, persona FROM holders WHERE rank = ? AND until <= ? LIMIT ?", ASKED, now, most
        )
        for ident, persona in over:
            self._do("UPDATE holders SET rank = ? WHERE id = ?", SCRATCH, ident)
            self._spend(persona, ASKED, -ENTRY)
            self._spend(persona, SCRATCH, ENTRY)
            for digest, size in self._all("SELECT hash, size FROM held WHERE id = ?", ident):
                self._count(digest, persona, size, SCRATCH, 1)
                self._count(digest, persona, size, ASKED, -1)

    def oldest(self, personas: Iterable[str], ranks: Iterable[int], skipped: frozenset[str]) -> str | None:
        """The holder to go first: of the least rank, and of those the oldest."""
        for rank in ranks:
            for persona in personas:
                for (ident,) in self._database.execute(
                    "SELECT id FROM holders WHERE persona = ? AND rank = ? ORDER BY at, id", (persona, rank)
                ):
                    if ident not in skipped:
                        return str(ident)
        return None

    def unkept(self) -> list[str]:
        return [ident for (ident,) in self._all("SELECT id FROM holders WHERE rank = ?", UNKEPT)]

    def spent(self, persona: str | None = None, ranks: Sequence[int] = RANKS[1:]) -> int:
        """Bytes of a persona, or of all of them together."""
        return sum(
            size for (who, rank), size in self._spent.items() if rank in ranks and persona in (None, who)
        )

    def new_to(self, persona: str, sizes: Sizes, least: int) -> int:
        """How many of these bytes the persona does not hold already at this rank or a higher one."""
        return sum(size for digest, size in sizes.items() if _highest(self._held(digest, persona)) < least)

    @property
    def complete(self) -> bool:
        """Whether what was kept before there were accounts is in them."""
        return bool((self._row("PRAGMA user_version") or (0,))[0])

    def completed(self) -> None:
        self._do("PRAGMA user_version = 1")

    def usage(self) -> tuple[int, int]:
        """How many images there are, and their bytes, each counted once."""
        found = self._row(
            "SELECT count(*), sum(size) FROM (SELECT max(size) AS size FROM owned GROUP BY hash)"
        )
        assert found is not None
        return int(found[0]), int(found[1] or 0)

    def _count(self, digest: str, persona: str, size: int, rank: int, by: int) -> None:
        held = list(self._held(digest, persona))
        before = _highest(held)
        held[rank] += by
        after = _highest(held)
        self._owned[digest, persona] = held
        if after < 0:
            self._do("DELETE FROM owned WHERE hash = ? AND persona = ?", digest, persona)
        else:
            self._do(
                "INSERT OR REPLACE INTO owned VALUES (?, ?, ?, ?, ?, ?, ?)", digest, persona, size, *held
            )
        if before != after:
            self._spend(persona, before, -size)
            self._spend(persona, after, size)

    def _held(self, digest: str, persona: str) -> list[int]:
        """By how many holders of each rank."""
        known = self._owned.get((digest, persona))
        if known is None:
            sql = "SELECT n0, n1, n2, n3 FROM owned WHERE hash = ? AND persona = ?"
            known = self._owned[digest, persona] = list(self._row(sql, digest, persona) or (0, 0, 0, 0))
        return known

    def _spend(self, persona: str, rank: int, size: int) -> None:
        if rank >= 0:
            self._spent[persona, rank] = self._spent.get((persona, rank), 0) + size
            self._altered.add((persona, rank))

    def _do(self, sql: str, *given: object) -> None:
        self._database.execute(sql, given)

    def _row(self, sql: str, *given: object) -> tuple[Any, ...] | None:
        with closing(self._database.execute(sql, given)) as cursor:
            found: tuple[Any, ...] | None = cursor.fetchone()
            return found

    def _all(self, sql: str, *given: object) -> list[tuple[Any, ...]]:
        return self._database.execute(sql, given).fetchall()


def _highest(held: Sequence[int]) -> int:
    """The highest rank that holds it; -1 for none."""
    return max((rank for rank in RANKS if held[rank]), default=-1)
