"""The sandbox as the rest of toolgate holds it: a job in, an outcome out. It starts with the first job and ends with `close`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from toolgate.core.errors import CallError, InvalidArgs, Unavailable
from toolgate.sandbox import javascript, probe, program
from toolgate.sandbox.execution import ProgramRun
from toolgate.sandbox.inside.order import LAYERS
from toolgate.sandbox.job import Broker, Egress, Job, Language, Mode, Outcome
from toolgate.sandbox.places import JobDirectories
from toolgate.sandbox.prepared import Prepared, WallShape, Zygote
from toolgate.sandbox.probe import Uids
from toolgate.sandbox.program import Made, ProgramCommand
from toolgate.sandbox.program_files import KeepLimits

# Processes that are ready before there is a program for them, and the zygote they come from.

JOBS, MINUTES = 500, 10
"""After so many processes or so much time the next one comes from a new zygote: jobs of one share a memory layout."""


class Pool:
    """The most recently used shapes are kept ready."""

    def __init__(self, mode: Mode, warm: int, ablation: bool) -> None:
        self.mode = mode
        self.warm = warm
        self.ablation = ablation
        self.uids = Uids.choose() if mode == "root" else None
        self.places: JobDirectories | None = None
        self.zygote: Zygote | None = None
        self._ready: list[Prepared] = []
        self._out: set[Prepared] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._latest: WallShape | None = None
        self._refilling: asyncio.Task[None] | None = None
        self._none_out = asyncio.Event()
        self._starting = asyncio.Lock()
        self._closed = False

    async def take(self, shape: WallShape) -> Prepared:
        while (one := self._ready_one(shape)) is not None:
            if one.alive:
                return one
            await self.release(one)
        return await self._prepare(shape)

    async def release(self, prepared: Prepared) -> None:
        """The program is done, or is to be: nothing of it stays, also where whoever waits here is cancelled."""
        await asyncio.shield(self._in_background(_end(prepared)))

    def refill(self, shape: WallShape) -> None:
        """In the background; the program that was asked for does not wait for the next one."""
        self._latest = shape
        if self.warm and not self._closed and (self._refilling is None or self._refilling.done()):
            self._refilling = asyncio.ensure_future(self._refill())

    async def close(self) -> None:
        self._closed = True
        if self._refilling is not None:
            self._refilling.cancel()
            await asyncio.gather(self._refilling, return_exceptions=True)
        zygotes = {one.zygote for one in self._out} | ({self.zygote} if self.zygote else set())
        for zygote in zygotes:
            await zygote.close()
        while self._ready:
            await self.release(self._ready.pop())
        if self._out:  # their programs ended with the zygote: whoever runs them is about to notice
            self._none_out.clear()
            await self._none_out.wait()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.places is not None:
            await asyncio.to_thread(self.places.close)

    def _ready_one(self, shape: WallShape) -> Prepared | None:
        found = next((one for one in self._ready if one.shape == shape), None)
        if found is not None:
            self._ready.remove(found)
        return found

    async def _refill(self) -> None:
        """Of what was asked for last."""
        try:
            while self._latest and sum(one.shape == self._latest for one in self._ready) < self.warm:
                one = await self._prepare(self._latest)
                self._ready.append(one)
        except (Unavailable, OSError):
            return  # whoever needs one will hear of it
        while len(self._ready) > self.warm:
            await self.release(self._ready.pop(0))

    async def _prepare(self, shape: WallShape) -> Prepared:
        try:
            return await self._attempt(shape)
        except ConnectionError:  # somebody killed the zygote
            pass
        except OSError as error:
            raise Unavailable(f"the sandbox cannot start a process: {error}", "try again later") from error
        try:
            return await self._attempt(shape)
        except OSError as error:
            raise Unavailable(f"the sandbox dies at once: {error}", "see `toolgate doctor`") from error

    async def _attempt(self, shape: WallShape) -> Prepared:
        zygote = await self._fresh_zygote()
        uid = self.uids.take() if self.uids else 0
        place = self._place(uid, shape)
        prepared = Prepared(shape, zygote, uid, place)
        prepared.forget = self._forget
        self._out.add(prepared)
        try:
            await prepared.raise_walls()
        except BaseException:
            await self.release(prepared)
            raise
        return prepared

    def _place(self, uid: int, shape: WallShape) -> str:
        if self.mode != "landlock" and "mounts" not in shape.off:
            return ""
        self.places = self.places or JobDirectories()
        return self.places.new(uid if "uid" not in shape.off else 0, shape.packages)

    async def _fresh_zygote(self) -> Zygote:
        async with self._starting:
            if self._closed:
                raise Unavailable("the sandbox is closed", "open the project again")
            old = self.zygote
            if old is not None and not old.dead and not _worn(old):
                return old
            self.zygote = await Zygote.start(self.mode, self.ablation)
        if old is not None:
            self._retire(old)
        return self.zygote

    def _retire(self, zygote: Zygote) -> None:
        """It starts nothing any more; it goes with the last program it started. Nobody waits for that."""
        stale = [one for one in self._ready if one.zygote is zygote]
        for one in stale:
            self._ready.remove(one)
            self._in_background(_end(one))
        if not any(one.zygote is zygote for one in self._out):
            self._in_background(zygote.close())

    def _in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        self._tasks.add(task := asyncio.ensure_future(work))
        task.add_done_callback(self._tasks.discard)
        return task

    def _forget(self, prepared: Prepared) -> None:
        if prepared not in self._out:
            return
        self._out.discard(prepared)
        if not self._out:
            self._none_out.set()
        if self.uids:
            self.uids.give_back(prepared.uid)
        if prepared.place and self.places is not None:
            self.places.remove(prepared.place)
        last = prepared.zygote is not self.zygote and not any(
            one.zygote is prepared.zygote for one in self._out
        )
        if last and not self._closed:
            self._in_background(prepared.zygote.close())


async def _end(prepared: Prepared) -> None:
    await prepared.end()
    prepared.close()


def _worn(zygote: Zygote) -> bool:
    return zygote.used >= JOBS or time.monotonic() - zygote.begun > MINUTES * 60


@dataclass(frozen=True, slots=True)
class Walls:
    """No setting, argument of a call or environment variable leads here: only code that constructs a Host with it."""

    off: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if unknown := self.off - LAYERS:
            raise ValueError(
                f"there is no layer {sorted(unknown)[0]!r}; there are: {', '.join(sorted(LAYERS))}"
            )


ALL_WALLS = Walls()


WARM_PROCESSES = 2
KEEP = KeepLimits()


class Host:
    """Runs programs, each behind walls of its own."""

    def __init__(
        self,
        wanted: probe.Wanted = "auto",
        *,
        warm: int = WARM_PROCESSES,
        keep: KeepLimits = KEEP,
        programs: Mapping[Language, Made] | None = None,
        walls: Walls = ALL_WALLS,
    ) -> None:
        self._wanted = wanted
        self._warm = warm
        self._keep = keep
        self._programs: dict[Language, Made] = {
            "shell": program.shell,
            "javascript": javascript.program,
            **(programs or {}),
        }
        self._walls = walls
        self._standing: probe.ProbedWalls | None = None
        self._pool: Pool | None = None
        self._closed = False
        self._opening = asyncio.Lock()

    @property
    def mode(self) -> Mode:
        """Which walls stand. The first time it is asked it tries them, which takes a moment."""
        if self._standing is None:
            self._standing = probe.look(self._wanted)
        return self._standing.held()

    async def run(self, job: Job, *, egress: Egress | None = None, broker: Broker | None = None) -> Outcome:
        try:
            pool = await self._open()
            _refuse_impossible(job, pool.mode, egress is not None)
            made = self._program(job, egress is not None, broker)
            shape = WallShape.of(job, made, egress is not None, self._walls.off)
            prepared = await pool.take(shape)
        except CallError as error:
            error.certain = True  # nothing has run
            raise
        try:
            return await ProgramRun(job, prepared, egress, broker).run(made, self._keep)
        finally:
            await pool.release(prepared)
            if shape.view is None:  # what lies below a view changes: the next one is built when it is needed
                pool.refill(shape)

    def check(self, job: Job, *, networked: bool = False) -> None:
        """Blocking. Refuses what `run` would refuse before anything starts: walls, limits, programs that are not there."""
        _refuse_impossible(job, self.mode, networked)
        self._program(job, networked, None)

    async def close(self) -> None:
        self._closed = True
        if self._pool is not None:
            await self._pool.close()
            self._pool = None

    async def _open(self) -> Pool:
        if self._closed:
            raise Unavailable("the sandbox is closed", "open the project again")
        async with self._opening:
            if self._pool is None:
                mode = await asyncio.to_thread(lambda: self.mode)
                self._pool = Pool(mode, self._warm, bool(self._walls.off))
        return self._pool

    def _program(self, job: Job, networked: bool, broker: Broker | None) -> ProgramCommand | None:
        if job.language == "python":
            return None
        return self._programs[job.language](job, networked, broker)


def _refuse_impossible(job: Job, mode: Mode, networked: bool) -> None:
    """What cannot be done is refused before anything starts."""
    limits = job.limits
    numbers = (
        limits.wall_s,
        limits.cpu_s,
        limits.memory_bytes,
        limits.processes,
        limits.files,
        limits.output_bytes,
    )
    if min(*numbers, limits.disk_bytes, limits.inodes) <= 0:
        raise InvalidArgs("a limit is not above zero", "give every limit a number above zero")
    if "\0" in job.code or any("\0" in each for each in job.argv):
        raise InvalidArgs("the program contains a null character", "remove it")
    if mode != "landlock":
        return
    for refused, what in (
        (networked, "a network grant"),
        (limits.processes > 1, f"starting other processes (up to {limits.processes})"),
    ):
        if refused:
            raise Unavailable(
                f"{what} needs namespaces, and here only Landlock and seccomp hold",
                "`toolgate doctor` says why there are no namespaces; without it the program can run",
            )
