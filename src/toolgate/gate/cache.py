"""Results of reads that may be served again for a short time. Bounded; never for writers."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any

MAX_ENTRIES = 512


class Cache:
    def __init__(self, limit: int = MAX_ENTRIES) -> None:
        self._limit = limit
        self._entries: OrderedDict[str, tuple[float, Any]] = OrderedDict()

    def get(self, digest: str) -> Any | None:
        entry = self._entries.get(digest)
        if entry is None:
            return None
        if entry[0] < time.monotonic():
            del self._entries[digest]
            return None
        self._entries.move_to_end(digest)
        return entry[1]

    def put(self, digest: str, value: Any, seconds: float) -> None:
        self._entries[digest] = (time.monotonic() + seconds, value)
        self._entries.move_to_end(digest)
        while len(self._entries) > self._limit:
            self._entries.popitem(last=False)

    def clear(self) -> None:
        """After any write: what was read before may be stale."""
        self._entries.clear()
