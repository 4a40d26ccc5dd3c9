"""64 callers at once: journal rows per second against raw group commit of rows of the same size."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bench import rawpg, world
from bench.measure import Line, hammer, median
from bench.raw import rate_of_tasks, rate_of_threads, raw_log
from bench.run import Run
from toolgate.facade import Gate

CALLERS = 64
BAR = 0.4
Peer = Callable[[float], Awaitable[float]]


@dataclass
class Rates:
    rows: float
    calls: float
    raw: list[float]


async def crowd(run: Run) -> list[Line]:
    rates = await _sqlite(run)
    group = "a writer thread, groups ≤ 64, FULL, 64 producers"
    lines = [
        _line("SQLite", rates, 0, f"{group} that are threads", run, bar=True),
        _line("SQLite, stricter peer", rates, 1, f"{group} that are tasks of one event loop", run, bar=False),
    ]
    address = run.postgres()
    if address is not None:
        with address as dsn:
            rates, way = await _postgres(run, dsn)
        lines.append(_line("PostgreSQL", rates, 0, f"asyncpg, 64 rows a commit, {way}", run, bar=True))
    return lines


async def _sqlite(run: Run) -> Rates:
    run.tell("64 callers on SQLite against raw group commit")
    folder = run.folder("crowd")
    async with world.gate(folder) as gate:
        with raw_log(folder / "raw.db") as log:
            peers = (
                lambda seconds: rate_of_threads(log, seconds),
                lambda seconds: rate_of_tasks(log, seconds),
            )
            return await _rounds(run, gate, *peers)


async def _postgres(run: Run, dsn: str) -> tuple[Rates, str]:
    run.tell("64 callers on PostgreSQL against batched raw inserts")
    folder = run.folder("crowd-pg")
    async with world.gate(folder, dsn) as gate, rawpg.raw_table(dsn) as table:
        way = await rawpg.faster_way(table, _seconds(run) / 2)
        rates = await _rounds(run, gate, lambda seconds: rawpg.rate(table, way, seconds))
        return rates, way


def _seconds(run: Run) -> float:
    return 0.6 if run.quick else 2.0


async def _rounds(run: Run, gate: Gate, *peers: Peer) -> Rates:
    """Ours and the peers in turns; the median round of each counts."""
    await world.checked(gate, world.EFFECT, world.ARGS)

    async def call() -> object:
        return await gate.call(world.EFFECT.name, world.ARGS)

    seconds, backend = _seconds(run), gate.services.ledger.backend
    await hammer(call, CALLERS, seconds / 4)
    rows, calls = [], []
    raw: list[list[float]] = [[] for _ in peers]
    for _ in range(run.count(5, 3)):
        before, begun = (await backend.head()).seq, time.perf_counter()
        calls.append(await hammer(call, CALLERS, seconds))
        rows.append(((await backend.head()).seq - before) / (time.perf_counter() - begun))
        for rates, peer in zip(raw, peers, strict=True):
            rates.append(await peer(seconds))
    return Rates(median(rows), median(calls), [median(rates) for rates in raw])


def _line(database: str, rates: Rates, peer: int, what: str, run: Run, *, bar: bool) -> Line:
    ratio = rates.rows / rates.raw[peer]
    return Line(
        what=f"64 callers making effectful calls, {database}",
        ours=f"{rates.rows:,.0f} rows/s = {rates.calls:,.0f} calls/s",
        peer=f"{rates.raw[peer]:,.0f} rows/s",
        ratio=ratio,
        bar="≥ 0.4 ×" if bar else "–",
        holds=ratio >= BAR if bar else None,
        how=f"journal rows against raw rows of the same shape and size ({what}); {run.count(5, 3)} rounds in turns, medians",
    )
