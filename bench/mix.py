"""60 clients of one server with a usual mix: what all get through together, and how long a read takes beside the rest."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bench.measure import Line, median, millis
from bench.run import Run
from bench.world import LIMITS
from toolgate.project import trust

CLIENTS = 60
CALLS_BAR, READ_BAR = 250, 0.2
FILES = 1500
CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "builder",
    "personas": {"builder": {"phase": "contribute", "allow": ["fs.*", "code.*"]}},
    "limits": LIMITS,
}
_LINES = "def part(self, value: int) -> int:\n    return self.total + value  # as it was\n"
Samples = dict[str, list[float]]


async def mix(run: Run) -> list[Line]:
    run.tell("60 clients with a mix of reads, searches and writes")
    root = run.folder("mix")
    _grow(root)
    seconds = 4.0 if run.quick else 10.0
    rates: list[float] = []
    reads: list[float] = []
    searches: list[float] = []
    async with _server(root) as (port, token):
        await _round(port, token, 2.0)
        for _ in range(run.count(3, 1)):
            samples, took = await _round(port, token, seconds)
            rates.append(sum(map(len, samples.values())) / took)
            reads.append(median(samples["fs.read"]))
            searches.append(median(samples["code.search"]))
    rate, read = median(rates), median(reads)
    how = (
        f"{CLIENTS} HTTP clients in another process on the same cores, {FILES:,} files: 60 % reads, 10 % listings, 10 % searches "
        "of the project, 20 % writes; medians of the rounds"
    )
    return [
        Line(what="60 clients, a usual mix", ours=f"{rate:,.0f} calls/s", how=how, bar="≥ 250 calls/s", holds=rate >= CALLS_BAR),
        Line(what="`fs.read` beside it, p50", ours=millis(read), how=how, bar="≤ 200 ms", holds=read <= READ_BAR),
        Line(what="`code.search` of the project beside it, p50", ours=millis(median(searches)), how=how),
    ]  # fmt: skip


def _grow(root: Path) -> None:
    for number in range(FILES):
        file = root / f"src/m{number % 40}/part{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_LINES * 30 + f"needle = {number}\n" * (number % 50 == 0))
    (root / "out").mkdir()
    (root / "toolgate.yaml").write_text(json.dumps(CONFIG))
    trust.trust(root, Path(os.environ["TOOLGATE_STATE_DIR"]))


def _wanted(number: int) -> tuple[str, dict[str, Any]]:
    kind = number % 10
    if kind < 6:
        part = number * 7 % FILES
        return "fs.read", {"path": f"src/m{part % 40}/part{part}.py"}
    if kind == 6:
        return "fs.list", {"path": f"src/m{number % 40}"}
    if kind == 7:
        return "code.search", {"pattern": f"needle = {number % 900}"}
    return "fs.write", {"path": f"out/{number % 97}.md", "content": f"call {number}\n"}


@asynccontextmanager
async def _server(root: Path) -> AsyncIterator[tuple[int, str]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "toolgate", "up", "--port", "0", "--json", cwd=root,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        said = json.loads(await asyncio.wait_for(process.stdout.readline(), 60))["data"]
        yield int(said["api"].split(":")[2].split("/")[0]), said["token"]
    finally:
        process.terminate()
        await process.wait()


async def _round(port: int, token: str, seconds: float) -> tuple[Samples, float]:
    samples: Samples = {}
    numbers = iter(range(10**9))
    begun = time.perf_counter()

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
        while (start := time.perf_counter()) < begun + seconds:
            tool, args = _wanted(next(numbers))
            await _call(reader, writer, token, tool, args)
            samples.setdefault(tool, []).append(time.perf_counter() - start)
        writer.close()

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return samples, time.perf_counter() - begun


async def _call(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str, tool: str, args: dict[str, Any]
) -> None:
    body = json.dumps({"tool": tool, "args": args}).encode()
    head = (
        f"POST /api/v1/calls HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    told = (await reader.readuntil(b"\r\n\r\n")).lower()
    size = int(told.partition(b"content-length:")[2].split(b"\r\n")[0])
    answer = json.loads(await reader.readexactly(size))
    if not answer["ok"]:
        raise RuntimeError(f"{tool} failed: {answer['error']}")
