"""Recall by size: search, insert rate, memory and disk of one scope that grows, as a table and as a picture.

`TOOLGATE_BENCH_MILLION=1` goes on to a million items: 12 minutes of processor, 2.3 GB of disk. The picture is written when all was measured.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from bench.measure import Line, quantile
from bench.plot import Series, growth_svg
from bench.run import Run
from toolgate.recall.engine import Item, Recall, open_recall
from toolgate.storage.tables import SqliteTables

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
LARGE = (300_000, 1_000_000)
PICTURE = Path(__file__).parent / "recall-growth.svg"
VOCABULARY = 30_000
WORDS = 40
DIMENSION = 384
P50_MS = 10.0
EQUAL = 10_000
STALL_MS = 50.0


class Measured(NamedTuple):
    size: int
    put_rate: float
    p50: float
    p95: float
    processor: float
    """Of the median search: what a machine that does other things makes of it is in p50."""
    disk: int
    memory: int


async def recall_sizes(run: Run) -> list[Line]:
    sizes = SIZES[:3] if run.quick else SIZES + (LARGE if os.environ.get("TOOLGATE_BENCH_MILLION") else ())
    measured = await _grow(sizes, run)
    if not run.quick:
        PICTURE.write_text(_picture(measured))
    return [*map(_line, measured), await _equal_texts(run)]


class _Clustered:
    """Vectors near one of 2,000 centres, as texts of some topics are, without a model: its time is not measured here."""

    model, dimension, noise = "bench/clustered@1", DIMENSION, 0.0

    def __init__(self) -> None:
        import numpy as np

        self._chance = np.random.default_rng(7)
        self._centres = self._chance.normal(size=(2000, DIMENSION)).astype(np.float32)

    async def embed(self, texts: Any) -> Any:
        import numpy as np

        near = self._centres[[zlib.crc32(text.encode()) % 2000 for text in texts]]
        rows = near + self._chance.standard_normal((len(texts), DIMENSION), np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _text(chance: random.Random) -> str:
    """Words as often as words are: the second half as often as the first, and so on."""
    return " ".join(f"w{int(VOCABULARY ** chance.random())}" for _ in range(WORDS))


async def _grow(sizes: tuple[int, ...], run: Run) -> list[Measured]:
    chance, folder = random.Random(1), run.folder("recall-sizes")
    tables = SqliteTables(folder / "features.db")
    ours = await open_recall(tables, folder / "index", _Clustered())
    have, found = 0, []
    for size in sizes:
        begun = time.perf_counter()
        for at in range(have, size, 1000):
            run.tell(f"{at:,} of {size:,} items put")
            await ours.put([Item(str(at + n), "me", _text(chance)) for n in range(min(1000, size - at))])
            await ours.search("warm up", scope="me")  # the index follows, so that its time is in the rate
        rate = (size - have) / (time.perf_counter() - begun)
        have = size
        wall, spent = await _searched(ours, chance, run.count(200, 40))
        disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        found.append(
            Measured(
                size, rate, quantile(wall, 0.5), quantile(wall, 0.95), quantile(spent, 0.5), disk, _memory()
            )
        )
        run.tell(f"{size:,} items: p50 {quantile(wall, 0.5) * 1e3:.1f} ms")
    await ours.close()
    await tables.close()
    return found


async def _searched(ours: Recall, chance: random.Random, count: int) -> tuple[list[float], list[float]]:
    wall, spent = [], []
    for number in range(count + 20):
        query = " ".join(_text(chance).split()[:6])
        begun, used = time.perf_counter(), time.process_time()
        await ours.search(query, scope="me")
        if number >= 20:
            wall.append(time.perf_counter() - begun)
            spent.append(time.process_time() - used)
    return wall, spent


def _memory() -> int:
    """Of this process now, as far as the system says."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _line(each: Measured) -> Line:
    promised = each.size == 100_000
    return Line(
        what=f"search among {each.size:,} items",
        ours=f"p50 {each.p50 * 1e3:.1f} ms, p95 {each.p95 * 1e3:.1f} ms",
        how=f"p50 {each.processor * 1e3:.1f} ms of processor; {each.put_rate:,.0f} items/s put and indexed, "
        f"{each.disk / 1e6:,.0f} MB on disk, {each.memory / 1e6:,.0f} MB of memory; texts of {WORDS} words, "
        "no model: its time is not in it",
        bar=f"≤ {P50_MS:g} ms" if promised else "–",
        holds=each.p50 * 1e3 <= P50_MS if promised else None,
    )


async def _equal_texts(run: Run) -> Line:
    run.tell(f"{EQUAL:,} equal texts")
    folder = run.folder("recall-equal")
    tables = SqliteTables(folder / "features.db")
    ours = await open_recall(tables, folder / "index", _Clustered())
    await ours.put(
        [Item(str(n), "me", "the deploy key is in the vault of the build host") for n in range(EQUAL)]
    )
    await ours.search("warm up", scope="me")
    stall = 0.0

    async def beat() -> None:
        nonlocal stall
        while True:
            begun = time.perf_counter()
            await asyncio.sleep(0.001)
            stall = max(stall, time.perf_counter() - begun - 0.001)

    beating = asyncio.create_task(beat())
    begun, used = time.perf_counter(), time.process_time()
    await ours.search("where is the deploy key", scope="me")
    wall, used = time.perf_counter() - begun, time.process_time() - used
    beating.cancel()
    with suppress(asyncio.CancelledError):
        await beating
    await tables.close()
    return Line(
        what=f"search among {EQUAL:,} equal texts", ours=f"{wall * 1e3:.0f} ms, event loop stalled {stall * 1e3:.0f} ms at most",
        how=f"{used * 1e3:.0f} ms of processor; one hit that names 999 copies or more",
        bar=f"stall ≤ {STALL_MS:g} ms", holds=stall * 1e3 <= STALL_MS,
    )  # fmt: skip


def _picture(measured: list[Measured]) -> str:
    def points(value: Any) -> list[tuple[float, float]]:
        return [(each.size, value(each)) for each in measured]

    return growth_svg(
        "Recall by number of items",
        [
            Series("search, ms (p50)", points(lambda each: each.p50 * 1e3)),
            Series("search, ms of processor (p50)", points(lambda each: each.processor * 1e3)),
            Series("search, ms (p95)", points(lambda each: each.p95 * 1e3)),
            Series("disk, MB", points(lambda each: each.disk / 1e6)),
            Series("memory, MB", points(lambda each: each.memory / 1e6)),
        ],
    )
