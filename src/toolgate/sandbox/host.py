"""The sandbox as the rest of toolgate holds it: a job in, an outcome out. It starts with the first job and ends with `close`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from toolgate.core.errors import CallError, InvalidArgs, Unavailable
from toolgate.sandbox import javascript, probe, program
from toolgate.sandbox.collect import KeepLimits
from toolgate.sandbox.execution import ProgramRun
from toolgate.sandbox.inside.order import LAYERS
from toolgate.sandbox.job import Broker, Egress, Job, Language, Mode, Outcome
from toolgate.sandbox.pool import Pool
from toolgate.sandbox.prepared import WallShape
from toolgate.sandbox.program import Made, ProgramCommand


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
        self._standing: probe.Standing | None = None
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
