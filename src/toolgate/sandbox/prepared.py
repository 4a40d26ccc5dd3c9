"""Prepared processes: walls that stand around a process that waits for a program. Walls of equal shape can be swapped."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import socket
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from toolgate.core.errors import TooLarge, Unavailable
from toolgate.sandbox import zygote_client
from toolgate.sandbox.job import Environment, Job, Language, View
from toolgate.sandbox.program import ProgramCommand, existing, hidden, installed_in, readable
from toolgate.sandbox.zygote_client import Birth, ProcessEnd, Zygote


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
        given = [zygote_client.memory_file(json.dumps(order).encode()), zygote_client.memory_file(stdin)]
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
