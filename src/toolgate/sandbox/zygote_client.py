"""Client of the zygote: starts it, asks it for processes, hears how they ended."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolgate.core.errors import Unavailable
from toolgate.sandbox import probe
from toolgate.sandbox.job import Mode

_NOT_EXECUTABLE = 0x8
"""What is handed to a program as data must not become one that it executes."""


def memory_file(content: bytes) -> int:
    """A handle of a file that nobody can change any more."""
    handle = _memfd(os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.lseek(handle, 0, os.SEEK_SET)
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(handle, fcntl.F_ADD_SEALS, seals)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _memfd(flags: int) -> int:
    try:
        return os.memfd_create("given", flags | _NOT_EXECUTABLE)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return os.memfd_create("given", flags)  # a kernel before 6.3


START_SECONDS = 20
MESSAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    code: int
    """Below zero: the signal that ended it."""
    cpu_s: float
    memory_bytes: int


@dataclass(slots=True)
class Birth:
    """A process that was asked for."""

    started: asyncio.Future[int]
    """A handle of the process, or what was in the way."""
    ended: asyncio.Future[ProcessEnd | None]
    """None where the zygote went first."""


class Zygote:
    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        self.process = process
        self.control = control
        self.begun = time.monotonic()
        self.used = 0
        self.dead = False
        self.births: dict[int, Birth] = {}
        self._loop = asyncio.get_running_loop()
        self._up: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(control, self._hear)

    @classmethod
    async def start(cls, mode: Mode, ablation: bool = False) -> Zygote:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        complaints = os.memfd_create("zygote", os.MFD_CLOEXEC)
        try:
            more = ("ablation",) if ablation else ()
            process = subprocess.Popen(  # noqa: ASYNC220, S603  It must be a child of this thread, and only starts.
                probe.command(str(theirs.fileno()), mode, *more), pass_fds=[theirs.fileno()], env={}, cwd="/",
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=complaints,
            )  # fmt: skip
            theirs.close()
            zygote = cls(process, ours)
            try:
                async with asyncio.timeout(START_SECONDS):
                    await asyncio.shield(zygote._up)
            except (OSError, TimeoutError):
                await zygote.close()
                said = os.pread(complaints, MESSAGE_BYTES, 0).decode("utf-8", "replace").strip().splitlines()
                raise Unavailable(
                    f"the sandbox did not start: {said[-1] if said else 'it said nothing'}",
                    "see `toolgate doctor`",
                ) from None
            except BaseException:
                await zygote.close()
                raise
            return zygote
        finally:
            theirs.close()
            os.close(complaints)

    def ask(self, order: Mapping[str, Any], out: int, err: int, line: int) -> Birth:
        self.used += 1
        number = self.used
        birth = self.births[number] = Birth(self._loop.create_future(), self._loop.create_future())
        handle = memory_file(json.dumps(order).encode())
        try:
            socket.send_fds(self.control, [str(number).encode()], [handle, out, err, line])
        except OSError as error:
            self.births.pop(number)
            raise ConnectionError(f"the zygote does not listen: {error}") from error
        finally:
            os.close(handle)
        return birth

    async def close(self) -> None:
        """End it, and with it every process that it started."""
        self._lost()
        self.control.close()
        try:
            await asyncio.to_thread(self.process.wait, 0.5)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            await asyncio.to_thread(self.process.wait)

    def _hear(self) -> None:
        try:
            word, handles, _, _ = socket.recv_fds(self.control, MESSAGE_BYTES, 1)
        except BlockingIOError:
            return
        except OSError:
            word, handles = b"", []
        if not word:
            self._lost()
            return
        said = json.loads(word)
        if said["op"] == "up":
            _settle(self._up, None)
            return
        birth = self.births.get(said["job"])
        if birth is None:
            return
        if said["op"] == "started":
            if birth.started.done():
                os.close(handles[0])
            else:
                birth.started.set_result(handles[0])
        elif said["op"] == "refused":
            self.births.pop(said["job"])
            _settle(birth.ended, None)
            if not birth.started.done():
                birth.started.set_exception(OSError(said["error"]))
        else:
            self.births.pop(said["job"])
            _settle(birth.ended, ProcessEnd(said["code"], said["cpu"], said["memory"]))

    def _lost(self) -> None:
        if self.dead:
            return
        self.dead = True
        self._loop.remove_reader(self.control)
        if not self._up.done():
            self._up.set_exception(ConnectionError("it ended"))
            self._up.exception()  # whoever waited for it may have been cancelled
        for birth in self.births.values():
            if not birth.started.done():
                birth.started.set_exception(ConnectionError("the zygote ended"))
                birth.started.exception()  # nobody may be waiting for it
            _settle(birth.ended, None)
        self.births.clear()


def _settle(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)
