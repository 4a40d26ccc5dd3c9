"""Execution of one program: from handing it over to its outcome.

What it prints is kept up to a limit for both streams together. Which limit it ran into, where nobody had to stop it,
is read from how it ended and from the last lines of stderr, which are its own word: it can lie about itself only.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable
from typing import Any

from toolgate.core.errors import Unavailable
from toolgate.sandbox import places, program_files
from toolgate.sandbox.conversation import Conversation
from toolgate.sandbox.inside.view import MAX_BYTES, MAX_NAMES
from toolgate.sandbox.job import WORK, Altered, Broker, Egress, Job, Limit, Outcome
from toolgate.sandbox.prepared import Prepared, ProcessEnd
from toolgate.sandbox.program import ProgramCommand

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


_TAIL = 2000
_SAID: tuple[tuple[bytes, Limit], ...] = (
    (b"MemoryError", "memory"),
    (b"Cannot allocate memory", "memory"),
    (b"out of memory", "memory"),
    (b"allocation failed", "memory"),
    (b"can't start new thread", "processes"),
    (b"Resource temporarily unavailable", "processes"),
    (b"annot fork", "processes"),
    (b"Too many open files", "files"),
    (b"File too large", "disk"),
    (b"File size limit exceeded", "disk"),
    (b"No space left on device", "disk"),
)


def limit_of(job: Job, ended: ProcessEnd, stderr: bytes, work: int) -> Limit | None:
    # The kernel's limit counts ticks, what it reports is measured: on a busy machine they are far apart.
    if _killed(ended) and ended.cpu_s >= job.limits.cpu_s * 0.5:
        return "cpu"
    if -ended.code == signal.SIGXFSZ or ended.code == 128 + signal.SIGXFSZ:
        return "disk"
    if ended.code == 0:
        return None
    said = _said(stderr)
    return "inodes" if said == "disk" and _no_more_names(work) else said


def _killed(ended: ProcessEnd) -> bool:
    return ended.code in (-signal.SIGKILL, -signal.SIGXCPU, 128 + signal.SIGKILL, 128 + signal.SIGXCPU)


def _said(stderr: bytes) -> Limit | None:
    tail = stderr[-_TAIL:]
    places = [(tail.rfind(text), limit) for text, limit in _SAID]
    place, limit = max(places, key=lambda pair: pair[0])
    return limit if place >= 0 else None


def _no_more_names(work: int) -> bool:
    """Of a file system of its own; the host's counts no names for one program."""
    found = os.statvfs(work)
    return found.f_files > 0 and found.f_ffree == 0


class ProgramRun:
    def __init__(self, job: Job, prepared: Prepared, egress: Egress | None, broker: Broker | None) -> None:
        self.job = job
        self.prepared = prepared
        self.egress = egress
        self.limit: Limit | None = None
        self.capture = Capture((prepared.out, prepared.err), job.limits.output_bytes, self.stop)
        self.conversation = Conversation(prepared.line, broker, self.stop)

    def stop(self, limit: Limit) -> None:
        """The first limit is the one that is named."""
        self.limit = self.limit or limit
        self.prepared.kill()

    async def run(self, program: ProgramCommand | None, keep: program_files.KeepLimits) -> Outcome:
        begun = time.monotonic()
        helpers = self._helpers()
        try:
            stdin = self.job.stdin if program is None else program.stdin
            with contextlib.suppress(
                ConnectionError, BrokenPipeError
            ):  # it died while it waited: that is heard below
                program_files.put(self.prepared.work, self.job.files, self.prepared.uid)
                self.prepared.go(_go_order(self.job, program), stdin)
            ended = await self._end()
            duration = time.monotonic() - begun
            self.conversation.finish()
            stdout, stderr = self.capture.finish()
        finally:
            self.conversation.close()
            self.capture.close()
            await _cancelled(helpers)
        if ended is None:
            raise Unavailable("the sandbox was killed while the program ran", "run it again")
        if self.limit is None:
            self.limit = limit_of(self.job, ended, stderr, self.prepared.work)
        outcome = await self._outcome(ended, stdout, stderr, duration, keep)
        return program.finish(outcome) if program else outcome

    async def _end(self) -> ProcessEnd | None:
        timer = asyncio.get_running_loop().call_later(self.job.limits.wall_s, self.stop, "time")
        try:
            return await asyncio.shield(self.prepared.birth.ended)
        finally:
            timer.cancel()

    def _helpers(self) -> list[asyncio.Task[None]]:
        found = []
        if self.egress is not None and self.prepared.listener is not None:
            found.append(asyncio.ensure_future(self.egress.serve(self.prepared.listener)))
        limits = self.job.limits
        disk, inodes = limits.disk_bytes, limits.inodes
        watched = [(self.prepared.place, disk, inodes)] if self.prepared.place else []
        if self.prepared.place and self.prepared.copied:
            watched.append((f"{self.prepared.place}.project", disk + MAX_BYTES, inodes + MAX_NAMES))
        for place, most, names in watched:
            found.append(asyncio.ensure_future(places.watch(place, most, names, self.stop)))
        return found

    async def _outcome(
        self, ended: ProcessEnd, stdout: bytes, stderr: bytes, duration: float, keep: program_files.KeepLimits
    ) -> Outcome:
        work = self.prepared.work
        found = program_files.Collected()
        own = _own_name(self.job)
        if program_files.anything(work, own):
            found = await asyncio.to_thread(program_files.collect, work, keep, own)
        delta, unread = await self._delta()
        return Outcome(
            stdout=stdout,
            stderr=stderr,
            exit_code=ended.code if ended.code >= 0 else None,
            limit=self.limit,
            signal=-ended.code if ended.code < 0 else 0,
            duration_s=duration,
            cpu_s=ended.cpu_s,
            memory_bytes=ended.memory_bytes,
            outputs=tuple(self.conversation.outputs),
            left=tuple(found.left),
            delta=delta,
            requests=self.egress.requests if self.egress is not None else (),
            dropped=(*self.conversation.dropped, *found.dropped, *unread),
        )

    async def _delta(self) -> tuple[tuple[Altered, ...], list[str]]:
        handle = self.prepared.changes
        if handle < 0 or self.job.view is None or not self.job.view.writable:
            return (), []
        return await asyncio.to_thread(program_files.altered, self.job, handle, self.prepared.copied)


def _own_name(job: Job) -> str:
    """What stands in the work directory because the project's own path leads through its name."""
    known = job.view.known_as if job.view is not None else ""
    return known.removeprefix(WORK + "/").partition("/")[0] if known.startswith(WORK + "/") else ""


def _go_order(job: Job, program: ProgramCommand | None) -> dict[str, Any]:
    limits = job.limits
    scripted = program is None or (job.language == "shell" and not job.argv)
    return {
        "code": job.code if scripted else "",
        "argv": list(program.argv) if program else [],
        "env": dict(program.env) if program else {},
        "cpu": limits.cpu_s,
        "memory": limits.memory_bytes,
        "processes": limits.processes,
        "files": limits.files,
        "disk": limits.disk_bytes,
        "in_project": job.in_project and job.view is not None,
    }


async def _cancelled(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
