"""What a program says on its line: requests as JSON, one on a line. Nothing it says can hold or break the host."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from toolgate.sandbox.job import Broker, Limit

REQUESTS = 1000
LINE_BYTES = 256 << 10
TOTAL_BYTES = 8 << 20
DEPTH = 64
OUTPUTS = 100
OUTPUT_BYTES = 1 << 20
_CHUNK = 1 << 16


class Conversation:
    """Answers one request after the other. While the program does not read, it is not listened to."""

    def __init__(self, line: socket.socket, broker: Broker | None, stop: Callable[[Limit], None]) -> None:
        self.outputs: list[Any] = []
        self.dropped: list[str] = []
        self._line = line
        self._broker = broker
        self._stop = stop
        self._heard = bytearray()
        self._unsent = b""
        self._count = self._total = self._output_bytes = 0
        self._loop = asyncio.get_running_loop()
        self._closed = self._ended = False
        self._loop.add_reader(line, self._hear)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._loop.remove_reader(self._line)
            self._loop.remove_writer(self._line)

    def finish(self) -> None:
        """Hear what was said before the program ended; nobody waits for answers."""
        self._ended = True
        self._unsent = b""
        self._drain()
        while not self._closed and self._hear():
            pass
        self.close()

    def _hear(self) -> bool:
        """Whether there may be more."""
        try:
            said = self._line.recv(_CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            said = b""
        if not said:
            self.close()
            return False
        self._total += len(said)
        self._heard += said
        self._drain()
        if len(self._heard) > LINE_BYTES + _CHUNK or self._total > TOTAL_BYTES:
            self._too_much()
        return not self._closed

    def _drain(self) -> None:
        while not self._closed and not self._unsent and (end := self._heard.find(b"\n")) >= 0:
            request = bytes(self._heard[:end])
            del self._heard[: end + 1]
            self._take(request)

    def _take(self, request: bytes) -> None:
        self._count += 1
        if self._count > REQUESTS or len(request) > LINE_BYTES:
            self._too_much()
            return
        answer = self._answer(request)
        try:
            self._send(orjson.dumps(answer) + b"\n")
        except TypeError:
            self._send(b'{"error":"the answer cannot be told"}\n')

    def _answer(self, request: bytes) -> Mapping[str, Any]:
        try:
            message = orjson.loads(request)
        except orjson.JSONDecodeError:
            return {"error": "that is not JSON, or too deep"}
        if not isinstance(message, dict) or deeper_than(message, DEPTH):
            return {"error": f"a request is an object, at most {DEPTH} deep"}
        if message.get("op") == "output":
            return self._keep(message.get("data"), len(request))
        if self._broker is None:
            return {"error": "nobody answers here"}
        try:
            return self._broker.answer(message)
        except Exception:
            # What went wrong is the host's affair: its words may hold what the program must not see.
            return {"error": "the request failed"}

    def _keep(self, data: Any, size: int) -> Mapping[str, Any]:
        self._output_bytes += size
        if len(self.outputs) >= OUTPUTS or self._output_bytes > OUTPUT_BYTES:
            if not self.dropped:
                self.dropped.append(f"outputs beyond {OUTPUTS}, or {OUTPUT_BYTES:,} bytes")
            return {"error": f"no more than {OUTPUTS} outputs of {OUTPUT_BYTES:,} bytes together are kept"}
        self.outputs.append(data)
        return {"ok": True}

    def _send(self, answer: bytes) -> None:
        if self._ended:
            return
        self._unsent = self._sent(answer)
        if self._unsent:
            self._loop.remove_reader(self._line)
            self._loop.add_writer(self._line, self._go_on)

    def _go_on(self) -> None:
        self._unsent = self._sent(self._unsent)
        if not self._unsent:
            self._loop.remove_writer(self._line)
            self._loop.add_reader(self._line, self._hear)
            self._drain()

    def _sent(self, answer: bytes) -> bytes:
        """What could not be sent."""
        try:
            return answer[self._line.send(answer) :]
        except BlockingIOError:
            return answer
        except OSError:
            return b""  # it does not want the answer

    def _too_much(self) -> None:
        self.close()
        self._stop("requests")


def deeper_than(value: Any, depth: int) -> bool:
    """Level by level, so that depth costs no stack."""
    level = [value]
    for _ in range(depth):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True
