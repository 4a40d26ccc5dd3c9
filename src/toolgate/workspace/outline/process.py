"""Parsing in a process apart: grammars and lexers were written for honest files and may take hours over others, or crash.

There is one such process, started on first need, and it is given one file after another. It ends itself when a file
takes too long, and when this process is gone.
"""

from __future__ import annotations

import atexit
import json
import select
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

from toolgate.core.errors import TimedOut
from toolgate.workspace.outline import parse as program

SECONDS = 3
"""What one file may take; an honest one of the largest size takes a tenth."""
MEMORY = 2 << 30


class Parser:
    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._turn = Lock()

    def ask(self, work: str, data: bytes, **about: Any) -> Any:
        """What `parse.WORK` has under this name, carried out there."""
        if not self._turn.acquire(timeout=SECONDS):
            raise _too_long()
        try:
            return self._ask(data, {**about, "work": work, "seconds": SECONDS})
        except (OSError, EOFError):
            self._stop()
            raise _too_long() from None
        finally:
            self._turn.release()

    def close(self) -> None:
        with self._turn:
            self._stop()

    def _ask(self, data: bytes, about: Mapping[str, Any]) -> Any:
        process = self._running()
        assert process.stdin is not None
        head = json.dumps(about).encode()
        left = memoryview(struct.pack(">II", len(head), len(data)) + head + data)
        while left:  # a signal may cut one write short
            left = left[process.stdin.write(left) :]
        until = time.monotonic() + SECONDS + 1
        (size,) = struct.unpack(">I", self._read(process, 4, until))
        return json.loads(self._read(process, size, until))

    def _read(self, process: subprocess.Popen[bytes], size: int, until: float) -> bytes:
        assert process.stdout is not None
        found = bytearray()
        waiting = select.poll()
        waiting.register(process.stdout, select.POLLIN)
        while len(found) < size:
            if not waiting.poll(max(until - time.monotonic(), 0) * 1000):
                raise EOFError
            chunk = process.stdout.read(size - len(found))  # unbuffered: what there is
            if not chunk:
                raise EOFError
            found += chunk
        return bytes(found)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self._stop()
        if self._process is None:
            places = json.dumps([str(Path(place).absolute()) for place in sys.path if place])
            self._process = subprocess.Popen(  # noqa: S603 - our own file, a fixed argv
                [sys.executable, "-I", "-S", str(program.__file__), places, str(MEMORY)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}, cwd="/", bufsize=0,
            )  # fmt: skip
        return self._process

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for end in (process.stdin, process.stdout):
            if end is not None:
                with suppress(OSError):
                    end.close()
        process.wait(10)


def _too_long() -> TimedOut:
    return TimedOut(
        f"parsing it takes more than {SECONDS} s, or breaks the parser",
        "read it without `syntax_highlight`; it has no outline",
    )


PARSER = Parser()
atexit.register(PARSER.close)
