"""The parsing worker: one process, started when first needed, that parses what the gate must not.

Parsers hold the interpreter while they run, and text that is wrong everywhere makes them quadratic: in process no time
limit could fire, and a crash would be ours. A worker that is late or dies is replaced; what it was asked stays unanswered.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import orjson

CPU_SECONDS = 1.0
"""Processor time of one request; the worker's own timer ends it."""
WALL_SECONDS = 4.0
"""How long an answer is waited for, also on a machine that has much else to do."""
START_SECONDS = 10.0
"""The first answer of a process includes its start."""
MAX_ANSWER = 8 << 20
_PROGRAM = Path(__file__).with_name("parser.py")
Why = Literal["busy", "late", "died", "closed", "cannot start"]


class Unanswered(Exception):
    """There is no answer, and why."""

    def __init__(self, why: Why, *, again: bool) -> None:
        super().__init__(why)
        self.why = why
        self.again = again
        """Whether the same request may well be answered another time."""


class Worker:
    """Safe to ask from several threads; one request is under way at a time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        process = self._process
        return None if process is None else process.pid

    def ask(self, request: Mapping[str, Any], patience: float) -> dict[str, Any]:
        """The answer, or Unanswered. `patience` is how long to wait for those who asked before."""
        message = orjson.dumps({**request, "seconds": CPU_SECONDS})
        if not self._lock.acquire(timeout=patience):
            raise Unanswered("busy", again=True)
        try:
            process, wait = self._running()
            try:
                return _answer(_exchange(process, message, time.monotonic() + wait))
            except (OSError, ValueError):  # gone, silent, or not what a worker says
                raise self._dropped(process) from None
        finally:
            self._lock.release()

    def close(self) -> None:
        """End it at once, whatever it does; whoever waits for an answer gets none."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()
        with self._lock:
            if self._process is not None:
                _end(self._process)
            self._process = None

    def _running(self) -> tuple[subprocess.Popen[bytes], float]:
        if self._closed:
            raise Unanswered("closed", again=True)
        if self._process is not None and self._process.poll() is None:
            return self._process, WALL_SECONDS
        if self._process is not None:  # somebody ended it between two requests
            _end(self._process)
            self._process = None
        self._process = _start()
        if self._closed:  # meanwhile
            raise self._dropped(self._process)
        return self._process, START_SECONDS

    def _dropped(self, process: subprocess.Popen[bytes]) -> Unanswered:
        """By its own hand: it would again. By another's, or only slow: perhaps not."""
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.05)  # it may be about to end by itself; then its exit tells why
        alive = process.poll() is None
        _end(process)
        self._process = None
        if self._closed:
            return Unanswered("closed", again=True)
        if alive:
            return Unanswered("late", again=True)
        ended = -process.returncode
        if ended in (signal.SIGPROF, signal.SIGXCPU):  # its processor time was used up
            return Unanswered("late", again=False)
        return Unanswered("died", again=ended in (signal.SIGKILL, signal.SIGTERM))


def _start() -> subprocess.Popen[bytes]:
    """Isolated and without site: it finds nothing that it is not shown, and inherits nothing."""
    if not sys.executable:
        raise Unanswered("cannot start", again=True)
    try:
        process = subprocess.Popen(  # noqa: S603 - a fixed program and fixed arguments
            [sys.executable, "-I", "-S", "-B", "-X", "utf8", str(_PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            bufsize=0,
            start_new_session=True,
        )
    except OSError:
        raise Unanswered("cannot start", again=True) from None
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        os.set_blocking(stream.fileno(), False)
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        stream.close()


def _exchange(process: subprocess.Popen[bytes], message: bytes, deadline: float) -> bytes:
    """Send one message, get one. OSError where it does not come about in time."""
    assert process.stdin is not None
    assert process.stdout is not None
    into, out = process.stdin.fileno(), process.stdout.fileno()
    left = memoryview(len(message).to_bytes(4, "big") + message)
    got = bytearray()
    both = select.poll()
    both.register(into, select.POLLOUT)
    both.register(out, select.POLLIN)
    while len(got) < 4 or len(got) < 4 + _length(got):
        wait = deadline - time.monotonic()
        if wait <= 0 or not (ready := both.poll(wait * 1000)):
            raise TimeoutError
        for handle, _ in ready:
            if handle == out:
                chunk = os.read(out, 1 << 18)
                if not chunk:
                    raise BrokenPipeError
                got += chunk
            elif left:
                left = left[os.write(into, left[: 1 << 18]) :]
                if not left:
                    both.unregister(into)
    if left or len(got) != 4 + _length(got):
        raise ValueError("it spoke out of turn")
    return bytes(got[4:])


def _length(got: bytearray) -> int:
    length = int.from_bytes(got[:4], "big")
    if length > MAX_ANSWER:
        raise ValueError("an answer that long is none")
    return length


def _answer(body: bytes) -> dict[str, Any]:
    answer = orjson.loads(body)
    if not isinstance(answer, dict):
        raise ValueError("not an answer")
    return answer
