"""Processes end with the gate, however it ends and whatever they are like."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import toolgate

from .world import alive, code, config, raw, said, witnessed

KEEPER = """
import asyncio, json, sys, toolgate
async def main():
    async with toolgate.open(sys.argv[1], json.loads(sys.argv[2]), "memory") as gate:
        result = await gate.call("up.pid")
        print(result.data["content"][0]["text"], flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_until_gone(pid: int) -> None:
    until = time.monotonic() + 10
    while not gone(pid):
        assert time.monotonic() < until, f"{pid} is still there"
        time.sleep(0.02)


async def test_a_server_that_will_not_end_and_its_children_end_with_the_gate(place: Path) -> None:
    async with toolgate.open(place, config({"up": raw(place, "stubborn child")}), "memory") as gate:
        pid = int(said(await gate.call("up.pid")))
        child = int(witnessed(place)[0])
    assert gone(pid)
    wait_until_gone(child)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_no_server_outlives_a_gate_that_is_killed(place: Path, how: signal.Signals) -> None:
    servers = json.dumps(config({"up": raw(place, "stubborn")}))
    keeper = subprocess.Popen(
        [sys.executable, "-c", KEEPER, str(place), servers], stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(Path(toolgate.__file__).parents[1])},
    )  # fmt: skip
    try:
        assert keeper.stdout is not None
        pid = int(keeper.stdout.readline())
        assert not gone(pid)
        keeper.send_signal(how)
        keeper.wait(timeout=10)
        wait_until_gone(pid)
    finally:
        keeper.kill()
        keeper.communicate(timeout=10)


async def test_an_untrusted_project_starts_nothing(place: Path) -> None:
    (place / "toolgate.yaml").write_text(json.dumps(config({"up": raw(place)})))
    async with toolgate.open(place) as gate:
        assert code(await gate.call("up.pid")) == "unknown_tool"
        assert gate.servers() == []
    assert alive(str(place)) == []
    assert witnessed(place) == []
