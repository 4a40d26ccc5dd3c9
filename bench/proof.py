"""How fast a ledger is verified: every row, hash, seal and projection."""

from __future__ import annotations

import time

from bench import world
from bench.measure import Line, median
from bench.run import Run
from toolgate.core.clock import SystemClock
from toolgate.ledger.keys import Keys
from toolgate.ledger.ledger import Ledger
from toolgate.ledger.verify import verify
from toolgate.storage.port import Backend
from toolgate.storage.sqlite import SqliteBackend

BAR = 100_000


async def proof(run: Run) -> list[Line]:
    lines = [
        _line("SQLite", await _rate(run, SqliteBackend(run.folder("proof") / "ledger.db"), "SQLite"), run)
    ]
    address = run.postgres()
    if address is not None:
        from toolgate.storage.postgres import PostgresBackend

        with address as dsn:
            lines.append(_line("PostgreSQL", await _rate(run, PostgresBackend(dsn), "PostgreSQL"), run))
    return lines


def _rows(run: Run) -> int:
    return run.count(100_000, 20_000)


async def _rate(run: Run, backend: Backend, name: str) -> tuple[float, float]:
    rows = _rows(run)
    ledger = Ledger(backend, Keys.new(), world.Past())
    await ledger.open()
    try:
        await world.grow(ledger, rows, lambda done: run.tell(f"{name}: {done:,} of {rows:,} rows to verify"))
        run.tell(f"{name}: verifying {rows:,} rows")
        times = []
        for _ in range(run.count(7, 3)):
            begun = time.perf_counter()
            report = await verify(backend, ledger.keys, now=SystemClock().now())
            times.append(time.perf_counter() - begun)
            if not report.ok:
                raise RuntimeError(f"the ledger does not verify: {report.fault}")
        return report.events / min(times), report.events / median(times)
    finally:
        await ledger.close()


def _line(database: str, rates: tuple[float, float], run: Run) -> Line:
    promised = database == "SQLite"
    return Line(
        what=f"ledger verify, {database}",
        ours=f"{rates[0]:,.0f} events/s (median {rates[1]:,.0f})",
        bar="≥ 100,000 events/s" if promised else "–",
        holds=rates[0] >= BAR if promised else None,
        how=f"{_rows(run):,} rows: chain, seals, head and projections; the quickest of {run.count(7, 3)} counts",
    )
