"""64 callers at once: journal rows per second against raw group commit of rows of the same size."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bench import rawpg, world
from bench.measure import Line, median
from bench.raw import GroupCommit, raw_log
from bench.run import Run
from toolgate.facade import Gate

CALLERS = 64
BAR = 0.4


@dataclass
class Rates:
    rows: float
    calls: float
    raw: float


async def crowd(run: Run) -> list[Line]:
    lines = [
        _line("SQLite", await _sqlite(run), "a writer thread, 64 asyncio producers, groups ≤ 64, FULL", run)
    ]
    address = run.postgres()
    if address is not None:
        with address as dsn:
            rates, way = await _postgres(run, dsn)
        lines.append(_line("PostgreSQL", rates, f"asyncpg, 64 rows a commit, {way}", run))
    return lines


async def _sqlite(run: Run) -> Rates:
    run.tell("64 callers on SQLite against raw group commit")
    folder = run.folder("crowd")
    async with world.gate(folder) as gate:
        with raw_log(folder / "raw.db") as log:
            group = GroupCommit(log)
            try:
                return await _rounds(run, gate, lambda seconds: _hammer(group.append, seconds))
            finally:
                group.close()


async def _postgres(run: Run, dsn: str) -> tuple[Rates, str]:
    run.tell("64 callers on PostgreSQL against batched raw inserts")
    folder = run.folder("crowd-pg")
    async with world.gate(folder, dsn) as gate, rawpg.raw_table(dsn) as table:
        way = await rawpg.faster_way(table, _seconds(run) / 2)
        rates = await _rounds(run, gate, lambda seconds: rawpg.rate(table, way, seconds))
        return rates, way


def _seconds(run: Run) -> float:
    return 0.6 if run.quick else 2.0


async def _rounds(run: Run, gate: Gate, peer: Callable[[float], Awaitable[float]]) -> Rates:
    """Ours and the peer in turns; the median round of each counts."""
    await world.checked(gate, world.EFFECT, world.ARGS)

    async def call() -> object:
        return await gate.call(world.EFFECT.name, world.ARGS)

    seconds, backend = _seconds(run), gate.services.ledger.backend
    await _hammer(call, seconds / 4)
    await peer(seconds / 4)
    rows, calls, raw = [], [], []
    for _ in range(run.count(5, 3)):
        before, begun = (await backend.head()).seq, time.perf_counter()
        calls.append(await _hammer(call, seconds))
        rows.append(((await backend.head()).seq - before) / (time.perf_counter() - begun))
        raw.append(await peer(seconds))
    return Rates(median(rows), median(calls), median(raw))


async def _hammer(step: Callable[[], Awaitable[object]], seconds: float) -> float:
    """How often a second 64 callers get through, each going on as soon as it has its answer."""
    done = 0
    begun = time.perf_counter()
    end = begun + seconds

    async def caller() -> None:
        nonlocal done
        while time.perf_counter() < end:
            await step()
            done += 1

    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return done / (time.perf_counter() - begun)


def _line(database: str, rates: Rates, peer: str, run: Run) -> Line:
    ratio = rates.rows / rates.raw
    return Line(
        what=f"64 callers making effectful calls, {database}",
        ours=f"{rates.rows:,.0f} rows/s = {rates.calls:,.0f} calls/s",
        peer=f"{rates.raw:,.0f} rows/s",
        ratio=ratio,
        bar="≥ 0.4 ×",
        holds=ratio >= BAR,
        how=f"journal rows against raw rows of 700 B ({peer}); {run.count(5, 3)} rounds in turns, medians",
    )
