"""One program, from handing it over to its outcome."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

from toolgate.core.errors import Unavailable
from toolgate.sandbox import changes, collect, naming, places
from toolgate.sandbox.capture import Capture
from toolgate.sandbox.conversation import Conversation
from toolgate.sandbox.inside.copying import MAX_BYTES, MAX_NAMES
from toolgate.sandbox.job import Altered, Broker, Egress, Job, Limit, Outcome
from toolgate.sandbox.prepared import Prepared
from toolgate.sandbox.program import Program
from toolgate.sandbox.zygote import Ended


class Running:
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

    async def run(self, program: Program | None, keep: collect.Keep) -> Outcome:
        begun = time.monotonic()
        helpers = self._helpers()
        try:
            stdin = self.job.stdin if program is None else program.stdin
            with contextlib.suppress(
                ConnectionError, BrokenPipeError
            ):  # it died while it waited: that is heard below
                changes.put(self.prepared.work, self.job.files, self.prepared.uid)
                self.prepared.go(_go(self.job, program), stdin)
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
            self.limit = naming.limit_of(self.job, ended, stderr, self.prepared.work)
        outcome = await self._outcome(ended, stdout, stderr, duration, keep)
        return program.finish(outcome) if program else outcome

    async def _end(self) -> Ended | None:
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
        self, ended: Ended, stdout: bytes, stderr: bytes, duration: float, keep: collect.Keep
    ) -> Outcome:
        work = self.prepared.work
        found = collect.Collected()
        if collect.anything(work):
            found = await asyncio.to_thread(collect.collect, work, keep)
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
        return await asyncio.to_thread(changes.altered, self.job, handle, self.prepared.copied)


def _go(job: Job, program: Program | None) -> dict[str, Any]:
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
    }


async def _cancelled(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
