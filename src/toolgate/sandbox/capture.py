"""What a program prints, up to a limit for both streams together."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from toolgate.sandbox.job import Limit

_CHUNK = 1 << 16


class Capture:
    def __init__(self, handles: tuple[int, int], limit: int, stop: Callable[[Limit], None]) -> None:
        self._kept = {handle: bytearray() for handle in handles}
        self._open = set(handles)
        self._left = limit
        self._stop = stop
        self._loop = asyncio.get_running_loop()
        for handle in handles:
            self._loop.add_reader(handle, self._read, handle)

    def close(self) -> None:
        for handle in tuple(self._open):
            self._drop(handle)

    def finish(self) -> tuple[bytes, bytes]:
        """What is still in the pipes; nobody writes any more."""
        for handle in tuple(self._open):
            while handle in self._open and self._read(handle):
                pass
        self.close()
        out, err = self._kept.values()
        return bytes(out), bytes(err)

    def _read(self, handle: int) -> bool:
        """Whether there may be more."""
        try:
            data = os.read(handle, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._drop(handle)
            return False
        self._kept[handle] += data[: self._left]
        if len(data) > self._left:
            self._left = 0
            self.close()
            self._stop("output")
            return False
        self._left -= len(data)
        return True

    def _drop(self, handle: int) -> None:
        self._open.discard(handle)
        self._loop.remove_reader(handle)
