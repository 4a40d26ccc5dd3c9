"""The program's line to the host: one JSON object out, one back."""

from __future__ import annotations

import json
import socket
import threading
from typing import Any

HANDLE = 3


class Link:
    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._lock = threading.Lock()
        self._rest = b""

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """One round trip. ConnectionError where the host has hung up."""
        data = json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        with self._lock:
            self._line.sendall(data)
            while b"\n" not in self._rest:
                more = self._line.recv(1 << 16)
                if not more:
                    raise ConnectionError("the host has hung up")
                self._rest += more
            answer, _, self._rest = self._rest.partition(b"\n")
        found: dict[str, Any] = json.loads(answer)
        return found
