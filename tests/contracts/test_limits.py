"""A limit is exact however many processes run against it, on both databases."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.ledger.verify import verify

from .databases import Postgres, SqlDatabase

PROCESSES, TRIES, LIMIT = 10, 20, 100
CONFIG = {
    "version": 1,
    "default_persona": "ada",
    "personas": {"ada": {"phase": "observe", "limits": {"per_minute": LIMIT}}},
    "policy": {"rules": [{"name": "r", "persona": "*", "tools": ["t.*"], "decision": "allow"}]},
}
SCRIPT = Path(__file__).with_name("caller_to_race.py")


async def _line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


async def _race(command: list[str], processes: list[asyncio.subprocess.Process]) -> list[dict[str, int]]:
    for _ in range(PROCESSES):
        processes.append(
            await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
            )
        )
    assert [await _line(process) for process in processes] == ["ready"] * PROCESSES
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
    return [json.loads(await _line(process)) for process in processes]


async def test_ten_processes_get_exactly_their_hundred_calls(
    sql_database: SqlDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLGATE_STATE_DIR", str(tmp_path.parent / f"{tmp_path.name}-state"))
    place = sql_database.dsn if isinstance(sql_database, Postgres) else str(tmp_path / "ledger.db")
    async with toolgate.open(tmp_path, CONFIG, place):
        pass  # the key is made once, before anybody races for it
    processes: list[asyncio.subprocess.Process] = []
    command = [sys.executable, str(SCRIPT), str(tmp_path), place, json.dumps(CONFIG), str(TRIES)]
    try:
        counts: list[dict[str, Any]] = await asyncio.wait_for(_race(command, processes), 55)
        for process in processes:
            await asyncio.wait_for(process.wait(), 60)
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
                await process.wait()
    assert sum(count.get("ok", 0) for count in counts) == LIMIT, counts
    assert sum(count.get("rate_limited", 0) for count in counts) == PROCESSES * TRIES - LIMIT, counts
    async with toolgate.open(tmp_path, CONFIG, place) as gate:
        ledger = gate.services.ledger
        report = await verify(ledger.backend, ledger.keys)
        assert report.ok, report
        assert not await ledger.look(lambda state, now: state.live)


async def test_a_limit_by_effect_knows_the_calls_of_an_earlier_process(
    sql_database: SqlDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLGATE_STATE_DIR", str(tmp_path.parent / f"{tmp_path.name}-state"))
    place = sql_database.dsn if isinstance(sql_database, Postgres) else str(tmp_path / "ledger.db")
    config = {
        "version": 1, "default_persona": "ada", "personas": {"ada": {"allow": ["fs.*"]}},
        "limits": {"writes": {"project": {"per_hour": 2}}},
    }  # fmt: skip
    for number in range(2):
        async with toolgate.open(tmp_path, config, place) as gate:
            assert (await gate.call("fs.read", {"path": "a.txt"}, wait=False)).ok is bool(number)
            assert (await gate.call("fs.write", {"path": "a.txt", "content": str(number)})).ok
    async with toolgate.open(tmp_path, config, place) as gate:
        full = await gate.call("fs.append", {"path": "a.txt", "text": "x"})
        assert full.data["limit"] == "limits.writes.project.per_hour for ada"
