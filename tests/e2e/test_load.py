"""Fifty clients and thousands of calls, over HTTP, MCP and stdio at once: nothing fails, nothing is lost, nothing grows."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import toolgate
from faces.cli.driving import environment
from sampling import fewer
from toolgate.project import trust
from toolgate.storage.port import Filter

from .crowd import PATIENCE, Api, Client, Crowd, Mcp, Piped, Stateless, Wanted

CALLS = fewer(10_000, 2_000)
KINDS = {Api: 20, Mcp: 12, Stateless: 12, Piped: 6}
_MOST = {"per_minute": 1_000_000, "per_hour": 1_000_000}
CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "builder",
    "personas": {"builder": {"phase": "contribute", "allow": ["fs.write"]}},
    "limits": {"global": _MOST, "persona": _MOST},
}
FILES = 20
GROWTH = 8_000_000
"""Bytes that a process may grow after the first quarter: each remembers when the calls of the last hour began, for the
limits, and may load code with its first write. A leak of a kilobyte a call would show in the full
run, of a few in a sample."""


def wanted(number: int) -> Wanted:
    """Mostly reads, as an assistant's calls are; now and then a file is written."""
    if number % 40 == 20:
        return "fs.write", {"path": f"out/{number % 97}.md", "content": f"call {number}\n"}
    if number % 4 == 1:
        return "system.ping", {"message": f"call {number}"}
    return "code.read", {"path": f"src/part{number % FILES}.py"}


def resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def test_thousands_of_calls_of_fifty_clients_lose_nothing_and_leave_the_memory_flat(
    tmp_path: Path,
) -> None:
    root = project(tmp_path / "shop")
    memory: dict[int, list[int]] = {}
    async with up(root) as (pid, port, token), AsyncExitStack() as closing:
        clients: list[Client] = [
            *(Api(port, token) for _ in range(KINDS[Api])),
            *(Mcp(port, token) for _ in range(KINDS[Mcp])),
            *(Stateless(port, token) for _ in range(KINDS[Stateless])),
            *(Piped(root, environment()) for _ in range(KINDS[Piped])),
        ]
        for client in clients:
            await asyncio.wait_for(client.open(), PATIENCE)
            closing.push_async_callback(client.close)
        pids = [pid, *(client.process.pid for client in clients if isinstance(client, Piped))]

        def each(done: int) -> None:
            if done % (CALLS // 20) == 0:
                memory[done] = [resident(one) for one in pids]

        crowd = Crowd(clients, wanted, each)
        await crowd.run(CALLS)
    assert len(set(crowd.calls)) == CALLS
    await check_ledger(root, crowd.calls)
    assert all(crowd.shares[kind.__name__] >= CALLS // 50 for kind in KINDS), crowd.shares
    first, *_, last = (memory[done] for done in sorted(memory) if done >= CALLS // 4)
    grown = [after - before for before, after in zip(first, last, strict=True)]
    assert max(grown) < GROWTH, memory


async def check_ledger(root: Path, calls: list[str]) -> None:
    """Every call that was answered began once and was committed once, and the record proves itself."""
    async with toolgate.open(root) as gate:
        rows = await gate.events(Filter(kinds=("started", "committed"), limit=4 * CALLS))
        assert Counter((row.call, row.kind) for row in rows) == Counter(
            (call, kind) for call in calls for kind in ("started", "committed")
        )
        report = await gate.verify()
        assert report.ok, report


def project(root: Path) -> Path:
    (root / "src").mkdir(parents=True)
    (root / "out").mkdir()
    for number in range(FILES):
        (root / f"src/part{number}.py").write_text(f"def part{number}() -> int:\n    return {number}\n" * 10)
    (root / "toolgate.yaml").write_text(json.dumps(CONFIG))
    trust.trust(root, Path(os.environ["TOOLGATE_STATE_DIR"]))
    return root


@asynccontextmanager
async def up(root: Path) -> AsyncIterator[tuple[int, int, str]]:
    """A real server, which ends well when it is told to."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "toolgate", "up", "--port", "0", "--json", cwd=root, env=environment(),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        said = json.loads(await asyncio.wait_for(process.stdout.readline(), PATIENCE))["data"]
        yield process.pid, int(said["api"].split(":")[2].split("/")[0]), said["token"]
        process.terminate()
        assert await asyncio.wait_for(process.wait(), PATIENCE) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
