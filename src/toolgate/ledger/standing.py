"""What stands besides the running calls (questions, grants, pauses, doubts), as one short text for the head's seal.

Each line of it has a keyed hash (HMAC), and the hashes are added up: a change costs one addition however much stands,
and whoever lacks the key can neither make the hash of a line nor find other lines with the same sum. That sum is
not stored; only the head's seal over it is.

The questions may be thousands, and most openings need none of them. So the head also says what their hashes add up to,
and their table is read when somebody needs it, and believed only if it adds up to the same. What the head says is
covered by another keyed hash, of the head itself: the sums of two heads do not tell what any line weighs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from toolgate.core.errors import LedgerBroken
from toolgate.storage.schema import IN_MEMORY

if TYPE_CHECKING:
    from toolgate.ledger.keys import Keys
    from toolgate.storage.port import Head, Tables

QUESTIONS = "questions"
_MODULUS = 1 << 256


class Standing:
    __slots__ = ("_asked", "_here", "_keys", "_sum", "_version", "absent", "lines")

    def __init__(self) -> None:
        self.lines: dict[tuple[str, Any], str] = {}
        self._keys: Keys | None = None
        self._version = 0
        self._sum = 0
        self._asked = 0
        """The part of the sum that is the questions'."""
        self._here = 0
        """Questions whose lines are here."""
        self.absent = 0
        """Questions that stand and whose lines are not here."""

    def put(self, table: str, key: Any, row: Iterable[Any]) -> None:
        self.drop(table, key)
        line = self.lines[table, key] = f"{table} {' '.join(map(str, row))}"
        self._add(table, self._weight(line), 1)

    def drop(self, table: str, key: Any) -> None:
        line = self.lines.pop((table, key), None)
        if line is not None:
            self._add(table, -self._weight(line), -1)

    def sealed(self, keys: Keys, version: int) -> str:
        """The text that is sealed; empty if nothing stands. After a rotation all of it is weighed anew."""
        if not self.lines and not self.absent:
            return ""
        if keys is not self._keys or version != self._version:
            self._weigh_anew(keys, version)
        return f"sum {len(self.lines) + self.absent} {self._sum % _MODULUS:064x}"

    def spelled(self) -> str:
        """Every line, as heads of earlier versions sealed it."""
        return "\n".join(sorted(self.lines.values()))

    # --- questions that are not read ------------------------------------------------------------------------

    def leave_out(self, head: Head, keys: Keys) -> None:
        """Take the questions as the head has them: how many, and what they add up to. Nothing else of them is here."""
        try:
            _, count, covered = questions_of(head).split(" ")
            absent, asked = int(count), int(covered, 16)
        except ValueError:
            raise LedgerBroken(
                "the head does not say which questions stand",
                "run `toolgate ledger verify`; somebody changed the database",
            ) from None
        assert not self._here, "what is read is followed"
        self.absent = 0
        self._weigh_anew(keys, head.key)
        self.absent = absent
        self._add(QUESTIONS, asked - _cover(head.seq, head.hash, keys, head.key))

    def take_in(self, rows: Iterable[tuple[Any, ...]]) -> bool:
        """The questions that were left out; whether they are those of the head."""
        lines = {(QUESTIONS, row[0]): f"{QUESTIONS} {' '.join(map(str, row))}" for row in rows}
        weight = sum(map(self._weight, lines.values()))
        same = len(lines) == self.absent and (weight - self._asked) % _MODULUS == 0
        self.lines |= lines
        self._here, self.absent = len(lines), 0
        return same

    def list_all(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """The questions of a new one: nothing is weighed yet."""
        self.lines |= {(QUESTIONS, row[0]): f"{QUESTIONS} {' '.join(map(str, row))}" for row in rows}
        self._here = len(self.lines)

    def asked(self, seq: int, digest: str) -> str:
        """What the head of this event says of the questions; nothing where there are none. Only after `sealed`."""
        count = self._here or self.absent
        if not count:
            return ""
        assert self._keys is not None
        covered = (self._asked + _cover(seq, digest, self._keys, self._version)) % _MODULUS
        return f"{seq} {count} {covered:064x}"

    def _weigh_anew(self, keys: Keys, version: int) -> None:
        if self.absent:  # a file with one more key has the same keys for what is there
            assert version == self._version, "a Work that changes the key reads the questions"
            self._keys = keys
            return
        self._keys, self._version = keys, version
        self._sum = self._asked = 0
        for (table, _), line in self.lines.items():
            self._add(table, self._weight(line))

    def _add(self, table: str, weight: int, count: int = 0) -> None:
        self._sum += weight
        if table == QUESTIONS:
            self._asked += weight
            self._here += count

    def _weight(self, line: str) -> int:
        return 0 if self._keys is None else int(self._keys.mac(self._version, f"standing\n{line}") or "0", 16)


def questions_of(head: Head) -> str:
    """What the head says of the questions; nothing if a process of an earlier version has moved it since."""
    return head.questions if head.questions.startswith(f"{head.seq} ") else ""


def _cover(seq: int, digest: str, keys: Keys, version: int) -> int:
    return int(keys.mac(version, f"questions\n{seq}\n{digest}") or "0", 16)


def standing_of(tables: Tables) -> Standing:
    """Made from tables as a database holds them."""
    stands = Standing()
    for name in IN_MEMORY:
        for key, row in tables[name].items():
            stands.put(name, key, row)
    return stands
