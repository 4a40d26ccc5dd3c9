"""What stands besides the running calls (questions, grants, pauses, doubts), as one short text for the head's seal.

Each line of it has a keyed hash (HMAC), and the hashes are added up: a change costs one addition however much stands,
and whoever lacks the key can neither make the hash of a line nor find other lines with the same sum. The sum itself is
not stored; only the head's seal over it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolgate.ledger.keys import Keys

_MODULUS = 1 << 256


class Standing:
    __slots__ = ("_keys", "_lines", "_sum", "_version")

    def __init__(self) -> None:
        self._lines: dict[tuple[str, Any], str] = {}
        self._keys: Keys | None = None
        self._version = 0
        self._sum = 0

    def put(self, table: str, key: Any, row: Iterable[Any]) -> None:
        self.drop(table, key)
        line = self._lines[table, key] = f"{table} {' '.join(map(str, row))}"
        self._sum += self._weight(line)

    def put_all(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """The first of a new one: nothing is weighed yet."""
        self._lines.update({(table, row[0]): f"{table} {' '.join(map(str, row))}" for row in rows})

    def drop(self, table: str, key: Any) -> None:
        line = self._lines.pop((table, key), None)
        if line is not None:
            self._sum -= self._weight(line)

    def sealed(self, keys: Keys, version: int) -> str:
        """The text that is sealed; empty if nothing stands. After a rotation all of it is weighed anew."""
        if not self._lines:
            return ""
        if keys is not self._keys or version != self._version:
            self._keys, self._version = keys, version
            self._sum = sum(map(self._weight, self._lines.values()))
        return f"sum {len(self._lines)} {self._sum % _MODULUS:064x}"

    def spelled(self) -> str:
        """Every line, as heads of earlier versions sealed it."""
        return "\n".join(sorted(self._lines.values()))

    def _weight(self, line: str) -> int:
        return 0 if self._keys is None else int(self._keys.mac(self._version, f"standing\n{line}") or "0", 16)
