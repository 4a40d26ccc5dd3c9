"""Results of reads that may be served again. Bounded in number, size and time; never for writers.

A result that came from files is served only if everything it was made from is proven to be unchanged at that
moment. One that did not is served for as long as its tool says, and no longer than until something is written.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolgate.core.records import dataclass

if TYPE_CHECKING:
    from toolgate.core.evidence import Proof

MAX_ENTRIES = 512
MAX_BYTES = 32 << 20
_SHARE = 8
"""No result may take more than this part of the whole."""
_SEEN = 2048
_IN_VAIN = float("-inf")

Key = tuple[str | int, ...]
"""The digest of the call (tool, definition, arguments, persona), the fingerprint of the policy, and which secrets there
were: what was read before a value was set was not concealed."""


@dataclass(frozen=True, slots=True)
class CachedResult:
    value: bytes
    until: float
    proofs: tuple[Proof, ...] = ()

    @property
    def size(self) -> int:
        return len(self.value) + 256 * (1 + len(self.proofs))


class Cache:
    def __init__(self, most_bytes: int = MAX_BYTES, most_entries: int = MAX_ENTRIES) -> None:
        """Without room for a byte nothing is kept."""
        self._most_bytes, self._most_entries = most_bytes, most_entries
        self._entries: OrderedDict[Key, CachedResult] = OrderedDict()
        self._asked: OrderedDict[Key, float] = OrderedDict()
        self._unproven: set[Key] = set()
        """Of the entries, those that every effect ends."""
        self.bytes = 0

    @property
    def off(self) -> bool:
        return self._most_bytes <= 0

    def __len__(self) -> int:
        return len(self._entries)

    async def get(self, key: Key) -> bytes | None:
        kept = self._entries.get(key)
        if kept is None:
            return None
        if kept.until < time.monotonic() or not await _all_hold(kept.proofs):
            self._drop(key, kept)
            return None
        if key in self._entries:
            self._entries.move_to_end(key)
        return kept.value

    def put(self, key: Key, value: bytes, seconds: float, proofs: Sequence[Proof] = ()) -> None:
        kept = CachedResult(value, time.monotonic() + seconds, tuple(proofs))
        if kept.size > self._most_bytes // _SHARE:
            return
        self._drop(key, self._entries.get(key))
        self._entries[key] = kept
        if not kept.proofs:
            self._unproven.add(key)
        self.bytes += kept.size
        while self.bytes > self._most_bytes or len(self._entries) > self._most_entries:
            self._drop(*next(iter(self._entries.items())))

    def again(self, key: Key, seconds: float) -> bool:
        """Note that this is asked; whether it was asked before, within so many seconds."""
        now = time.monotonic()
        before = self._asked.pop(key, None)
        self._asked[key] = now if before != _IN_VAIN else before
        if len(self._asked) > _SEEN:
            self._asked.popitem(last=False)
        return before is not None and now - before < seconds

    def in_vain(self, key: Key) -> None:
        """A dear proof was made, and the result could not be kept for another reason: not again."""
        self._asked[key] = _IN_VAIN

    def forget_unproven(self) -> None:
        """After any effect: what nothing proves may have changed with it."""
        for key in list(self._unproven):
            self._drop(key, self._entries.get(key))

    def _drop(self, key: Key, kept: CachedResult | None) -> None:
        """Only this very entry: another call may have put a newer one in its place meanwhile."""
        if kept is not None and self._entries.get(key) is kept:
            del self._entries[key]
            self._unproven.discard(key)
            self.bytes -= kept.size


async def _all_hold(proofs: Sequence[Proof]) -> bool:
    try:
        for proof in proofs:
            if not await proof.holds():
                return False
    except Exception:  # gone, shut, not a file any more: whatever it is, it is not what it was
        return False
    return True
