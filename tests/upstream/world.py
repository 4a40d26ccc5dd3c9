"""What tests of servers share: configurations with real ones in them, and the proof that none outlives its test."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from toolgate import Gate

HERE = Path(__file__).parent
PATIENCE = 40.0


def raw(place: Path, behave: str = "", **more: Any) -> dict[str, Any]:
    """A server in plain Python; its arguments name the test's directory, so that it can be found."""
    env = {"BEHAVE": behave, "WITNESS": str(place / "witness"), "DEFINE": str(place / "define.json")}
    return {
        "command": sys.executable,
        "args": ["-I", "-S", str(HERE / "raw_server.py"), str(place)],
        "env": env | more.pop("env", {}),
        "pin": "first",
        **more,
    }


def hostile(place: Path, **more: Any) -> dict[str, Any]:
    """One that says and asks what its callers tell it to."""
    argv = ["-I", "-S", str(HERE / "hostile_server.py"), str(place)]
    return {"command": sys.executable, "args": argv, "pin": "first", **more}


def sdk(place: Path, **more: Any) -> dict[str, Any]:
    return {
        "command": sys.executable,
        "args": [str(HERE / "a_server.py"), "stdio", str(place)],
        "env": {"WITNESS": str(place / "witness")},
        "pin": "first",
        **more,
    }


def config(servers: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Ada may call everything without being asked; bob has what the phases give."""
    allowed = [f"{name}.*" for name in servers]
    return {
        "version": 1,
        "default_persona": "ada",
        "personas": {
            "ada": {"phase": "contribute", "allow": allowed},
            "bob": {"phase": "observe"},
            "eve": {"phase": "contribute"},
        },
        "servers": servers,
        **more,
    }


def witnessed(place: Path) -> list[str]:
    file = place / "witness"
    return file.read_text().splitlines() if file.exists() else []


def define(place: Path, *tools: dict[str, Any]) -> None:
    (place / "define.json").write_text(json.dumps(tools))


def a_tool(name: str, description: str = "does it", **more: Any) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": {"type": "object"}, **more}


def said(result: Any) -> str:
    assert result.ok, result.error
    return str(result.data["content"][0]["text"])


def code(result: Any) -> str:
    assert result.error is not None, result.data
    return str(result.error.code)


def status(gate: Gate, name: str = "up") -> dict[str, Any]:
    return next(one for one in gate.servers() if one["name"] == name)


def alive(mark: str) -> list[int]:
    """Processes whose command line names it, and that are more than a name in a table."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = process.info["cmdline"] or []
        if mark in line and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process.pid)
    return found


@contextmanager
def listening(kind: str, place: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server at an address of this machine, as long as it is needed."""
    process = subprocess.Popen(
        [sys.executable, str(HERE / "a_server.py"), kind, str(place)],
        stdout=subprocess.PIPE, text=True, env={"PATH": "/usr/bin:/bin", "WITNESS": str(place / "witness")},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        yield f"http://127.0.0.1:{port}/{'mcp' if kind == 'http' else 'sse'}", process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


async def settled(gate: Gate, wanted: Any) -> None:
    """Wait for what a notification sets off."""
    async with asyncio.timeout(60):
        while not wanted(status(gate)):
            await asyncio.sleep(0.01)
