"""The hash chain: how rows are linked and sealed, and with them what stands besides.

`hash` is SHA-256 over the row's columns, one a line, the previous row's hash last: anybody can check it.
`mac` is HMAC-SHA256 over that hash with a key the project does not hold: only the gate can make it.
No column can contain a line break (canonical JSON escapes them), so the lines say unambiguously which is which;
a row that breaks this is bad, whatever its hash.

What stands besides the running calls (questions, grants, pauses, doubts) is one short text for the head's seal. Each line
of it has a keyed hash, and the hashes are added up: a change costs one addition however much stands, and whoever lacks
the key can neither make the hash of a line nor find other lines with the same sum. That sum is not stored; only the
head's seal over it is.

The questions may be thousands, and most openings need none of them. So the head also says what their hashes add up to,
and their table is read when somebody needs it, and believed only if it adds up to the same. What the head says is
covered by another keyed hash, of the head itself: the sums of two heads do not tell what any line weighs.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from toolgate.core.errors import LedgerBroken
from toolgate.storage.port import Head, Row
from toolgate.storage.schema import EMPTY_HASH, IN_MEMORY

if TYPE_CHECKING:
    from toolgate.ledger.keys import Keys
    from toolgate.storage.port import Tables

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


_LINES = "\n".join(["%s"] * 12)
_sha256 = hashlib.sha256
_new = tuple.__new__
"""Makes a named tuple in a third of the time that its own `__new__` takes."""
_BREAKS = 11  # line breaks in a row's text: twelve lines


def row_text(row: Row) -> str:
    return _LINES % row[:12]


def row_hash(row: Row) -> str:
    return hashlib.sha256(row_text(row).encode()).hexdigest()


def seal(columns: tuple[Any, ...], keys: Keys) -> Row:
    """The row made of the first twelve columns, with its hash and mac."""
    text = "%d\n%d\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%d\n%s\n%s" % columns  # noqa: UP031 - half the cost of a format
    if text.count("\n") != _BREAKS:
        raise ValueError(f"a column of event {columns[0]} has a line break")
    digest = _sha256(text.encode()).hexdigest()
    return _new(Row, (*columns, digest, keys.mac(columns[9], digest)))


def head_text(seq: int, at: int, digest: str, live: str, standing: str, questions: str = "") -> str:
    """Where the journal ends and what stands there (running calls, questions, grants, pauses, doubts). Sealed apart
    from the rows, so that an older row's mac cannot stand in for a cut-off head."""
    text = f"head\n{seq}\n{at}\n{digest}\n{live}\n{standing}"
    return f"{text}\nquestions {questions}" if questions else text


def make_head(row: Row, keys: Keys, live: str, standing: str, questions: str = "") -> Head:
    seq, at, key, digest = row[0], row[1], row[9], row[12]
    mac = keys.mac(key, head_text(seq, at, digest, live, standing, questions))
    return _new(Head, (seq, at, key, digest, mac, live, questions, 0))


def running_of(head: Head) -> list[int]:
    """The events that started what ran when the head was written."""
    numbers = head.live.split(",") if head.live else []
    if not all(number.isascii() and number.isdigit() for number in numbers):
        raise LedgerBroken(
            "the head does not say which calls run",
            "run `toolgate ledger verify`; somebody changed the database",
        )
    return [int(number) for number in numbers]


def sound(row: Row, seq: int, prev: str, keys: Keys | None) -> bool:
    """Whether nothing is wrong with the row: `fault_of` for the millions that are as they should be."""
    text = _LINES % row[:12]
    if row[0] != seq or row[11] != prev or text.count("\n") != _BREAKS:
        return False
    try:
        digest = _sha256(text.encode()).hexdigest()
    except UnicodeEncodeError:
        return False
    return digest == row[12] and (keys is None or keys.mac(row[9], digest) == row[13] != "")


def fault_of(row: Row, seq: int, prev: str, keys: Keys | None) -> str:
    """What is wrong with the row that should be number `seq` after `prev`; empty if nothing is."""
    text = _LINES % row[:12]
    if row[0] != seq or row[11] != prev or text.count("\n") != _BREAKS:
        return _misplaced(row, seq, prev)
    try:
        digest = hashlib.sha256(text.encode()).hexdigest()
    except UnicodeEncodeError:
        return "a column is not valid text"
    if digest != row[12]:
        return "its content does not match its hash"
    if keys is None or _same(keys.mac(row[9], digest), row[13]):
        return ""
    if row.key not in keys:
        return f"it is sealed with key version {row.key}, which is not in the key file"
    return "its seal does not match the key"


def _misplaced(row: Row, seq: int, prev: str) -> str:
    if row.seq != seq:
        return f"event {seq} is missing" if row.seq > seq else f"event {row.seq} stands where {seq} should"
    return "it does not link to the event before it" if row.prev != prev else "a column has a line break"


def _same(made: str, stored: str) -> bool:
    """A tampered seal may hold anything, and `compare_digest` takes no other text than ASCII; an unknown key
    makes an empty seal, which is nobody's."""
    return bool(made) and isinstance(stored, str) and stored.isascii() and hmac.compare_digest(made, stored)


def check_key(head: Head, keys: Keys) -> None:
    if head.seq and head.key not in keys:
        raise LedgerBroken(
            f"the ledger is sealed with key version {head.key}, which is not in {keys.source}",
            "restore the key file that belongs to this ledger",
        )


def check_head(head: Head, keys: Keys, live: str, stands: Standing) -> None:
    """Refuse an end that was not sealed by us: a cut tail, the wrong key, tables that are not what stood there (a
    used approval or a revoked grant put back, a pause taken out). Rows that are missing cannot speak for themselves."""
    standing = stands.sealed(keys, head.key)
    if head.seq == 0 and head.hash == EMPTY_HASH and not (head.live or live or standing):
        return
    check_key(head, keys)
    questions = questions_of(head)
    made = keys.mac(head.key, head_text(head.seq, head.at, head.hash, live, standing, questions))
    if standing and not questions and not _same(made, head.mac):  # an earlier version sealed every line
        made = keys.mac(head.key, head_text(head.seq, head.at, head.hash, live, stands.spelled()))
    foreign = questions and questions != stands.asked(head.seq, head.hash)
    if head.live != live or foreign or not _same(made, head.mac):
        raise LedgerBroken(
            f"the ledger's end (event {head.seq}) and tables are not what was sealed with the key in {keys.source}",
            "run `toolgate ledger verify`; if it is the wrong key, restore the one that belongs to this ledger",
        )
