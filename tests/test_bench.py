"""Benchmarks are not tests, but one that does not run measures nothing."""

from __future__ import annotations

from pathlib import Path

from bench import world

from toolgate.storage.memory import MemoryBackend


async def test_what_is_measured_runs(tmp_path: Path) -> None:
    async with world.gate(tmp_path / "plain", MemoryBackend()) as gate:
        for tool in (world.READ, world.EFFECT):
            await world.checked(gate, tool, world.ARGS)
    async with world.gate(tmp_path / "ruled", MemoryBackend(), world.realistic()) as gate:
        for tool in (world.RULED_READ, world.RULED_WRITE):
            await world.checked(gate, tool, world.FILE_ARGS)
