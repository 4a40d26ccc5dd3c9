"""Prepared processes: walls that stand around a process that waits for a program. Walls of equal shape can be swapped.

They come from a zygote, whose client is here too: it starts the zygote, asks it for processes and hears how they ended.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from toolgate.core.errors import TooLarge, Unavailable
from toolgate.sandbox import probe
from toolgate.sandbox.job import Environment, Job, Language, Mode, View
from toolgate.sandbox.program import ProgramCommand, existing, hidden, installed_in, readable

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


@dataclass(frozen=True, slots=True)
class WallShape:
    kind: Language
    disk: int
    inodes: int
    read: tuple[str, ...]
    execute: tuple[str, ...]
    packages: tuple[str, ...]
    view: View | None
    processes: bool
    network: bool
    off: frozenset[str] = field(default=frozenset())

    @classmethod
    def of(cls, job: Job, program: ProgramCommand | None, network: bool, off: frozenset[str]) -> WallShape:
        given = (program.ro_paths, program.exec_paths) if program else (readable(), ())
        base = job.view.environment.base if job.view and job.view.environment else ""
        return cls(
            kind=job.language,
            disk=job.limits.disk_bytes,
            inodes=job.limits.inodes,
            read=existing(given[0]),
            execute=existing((*given[1], f"{base}/bin", f"{base}/lib") if base and program else given[1]),
            packages=tuple(str(path.resolve()) for path in job.packages),
            view=job.view,
            processes=job.limits.processes > 1,
            network=network,
            off=off,
        )

    def order(self, uid: int, place: str) -> dict[str, Any]:
        view = self.view and {
            "root": str(self.view.root), "hidden": list(self.view.hidden), "writable": self.view.writable,
            "disk": self.disk, "inodes": self.inodes, "environment": _environment(self.view.environment),
            "known_as": self.view.known_as,
        }  # fmt: skip
        return {
            "kind": self.kind, "uid": uid, "place": place, "disk": self.disk, "inodes": self.inodes,
            "read": list(self.read), "execute": list(self.execute), "packages": list(self.packages),
            "hide": list(self._hide()), "view": view,
            "processes": self.processes, "network": self.network, "off": sorted(self.off),
        }  # fmt: skip

    def _hide(self) -> tuple[str, ...]:
        """Packages of an installation are no part of the environments that are made from it."""
        environment = self.view.environment if self.view else None
        if self.kind == "python":
            return hidden()
        return installed_in(environment.base) if environment is not None and environment.base else ()


def _environment(found: Environment | None) -> dict[str, Any] | None:
    return None if found is None else {**asdict(found), "programs": list(found.programs)}


READY_SECONDS = 20


class Prepared:
    def __init__(self, shape: WallShape, zygote: Zygote, uid: int, place: str) -> None:
        self.shape = shape
        self.zygote = zygote
        self.uid = uid
        self.place = place
        self.out = self.err = self.pid = self.work = self.changes = -1
        self.copied = False
        """The project is a copy, and no layers, in which `changes` would be."""
        self.line: socket.socket
        self.listener: socket.socket | None = None
        self.birth: Birth
        self.forget: Callable[[Prepared], None] = lambda _: None

    async def raise_walls(self) -> None:
        """ConnectionError where the zygote is gone; Unavailable where a wall does not stand."""
        self.line, theirs = socket.socketpair()
        self.line.setblocking(False)
        self.out, out = os.pipe()
        self.err, err = os.pipe()
        try:
            self.birth = self.zygote.ask(self.shape.order(self.uid, self.place), out, err, theirs.fileno())
        finally:
            os.close(out)
            os.close(err)
            theirs.close()
        os.set_blocking(self.out, False)
        os.set_blocking(self.err, False)
        self.pid = await self.birth.started
        async with asyncio.timeout(
            READY_SECONDS
        ):  # wait_for may lose a cancellation that comes with the answer
            word, handles = await self._ready()
        if not word:
            raise ConnectionError("the process ended before its walls stood")
        said = json.loads(word)
        if said["op"] == "too large":
            raise TooLarge(
                f"{said['error']}, and here a program's view of it must be a copy",
                "give the program what it needs in `files`, or run where overlayfs and namespaces are allowed",
            )
        if said["op"] != "ready":
            raise Unavailable(
                f"a wall of the sandbox does not stand: {said['error']}", "see `toolgate doctor`"
            )
        self.work = handles.pop(0)
        self.copied = said["shown"] == "copy"
        if said["changes"]:
            self.changes = handles.pop(0)
        if handles:
            self.listener = socket.socket(fileno=handles[0])
            self.listener.setblocking(False)

    async def _ready(self) -> tuple[bytes, list[int]]:
        loop = asyncio.get_running_loop()
        heard: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self.line, lambda: None if heard.done() else heard.set_result(None))
        try:
            await heard
        finally:
            loop.remove_reader(self.line)
        try:
            word, handles, _, _ = socket.recv_fds(self.line, 4096, 3)
        except OSError:
            return b"", []
        return word, handles

    def go(self, order: dict[str, Any], stdin: bytes) -> None:
        """Hand the program over; it runs from here on."""
        given = [memory_file(json.dumps(order).encode()), memory_file(stdin)]
        try:
            socket.send_fds(self.line, [b"g"], given)
        finally:
            for handle in given:
                os.close(handle)

    @property
    def alive(self) -> bool:
        if self.birth.ended.done() or self.zygote.dead:
            return False
        gone = select.poll()  # the kernel knows before the zygote has told us
        gone.register(self.pid, select.POLLIN)
        return not gone.poll(0)

    def kill(self) -> None:
        """The first process of its namespace: with it the kernel ends every other one."""
        if self.pid >= 0:
            try:
                signal.pidfd_send_signal(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                return

    async def end(self) -> ProcessEnd | None:
        """Kill what is left and wait until it is gone. Whoever is cancelled here has killed it all the same."""
        self.kill()
        if not hasattr(self, "birth"):
            return None
        if self.pid < 0:
            self.line.close()  # it has started, or is about to: it ends when it finds nobody at the other end
        try:
            async with asyncio.timeout(READY_SECONDS):
                ended = await asyncio.shield(self.birth.ended)
        except TimeoutError:
            self.zygote.process.kill()
            ended = await asyncio.shield(self.birth.ended)
        if ended is None and self.pid >= 0:
            # The zygote went first and nobody has said that this one is gone: its files are not touched before.
            gone = select.poll()
            gone.register(self.pid, select.POLLIN)
            await asyncio.to_thread(gone.poll, READY_SECONDS * 1000)
        return ended

    def close(self) -> None:
        """Let go of every handle. The process must have ended, or the zygote with it."""
        self.kill()
        for handle in (self.out, self.err, self.pid, self.work, self.changes):
            if handle >= 0:
                os.close(handle)
        self.out = self.err = self.pid = self.work = self.changes = -1
        if hasattr(self, "line"):
            self.line.close()
        if self.listener is not None:
            self.listener.close()
        self.forget(self)
