"""`system.*`: is it alive, how is the machine, what do the logs say."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Annotated, Any, Literal

from toolgate.core import wire
from toolgate.core.annotations import Field
from toolgate.core.context import Context
from toolgate.core.errors import CallError
from toolgate.core.tool import Tool, tool
from toolgate.feature import FeatureContext
from toolgate.version import VERSION

TAIL_BYTES = 1024 * 1024
Message = Annotated[str, Field(max_length=64 << 10, description="What to send back.")]
Lines = Annotated[int, Field(ge=1, le=1000, description="Lines to give at most.")]
Level = Annotated[
    Literal["debug", "info", "warning", "error"], Field(description="The least serious level to give.")
]
Contains = Annotated[str, Field(max_length=1000, description="Only lines with this text in their message.")]


def tools(context: FeatureContext) -> list[Tool]:
    gate, logfile = context.gate, context.directory / "log" / "toolgate.jsonl"
    started = time.time()

    @tool("system.ping", reads=["system"])
    async def ping(message: Message = "pong") -> dict[str, Any]:
        """Answer, to show that the gate is alive."""
        return {"message": message, "version": VERSION, "uptime_s": round(time.time() - started, 1)}

    @tool("system.monitor", reads=["system"])
    async def monitor() -> dict[str, Any]:
        """CPU, memory, disk, the size of the ledger and of the kept images, and what is waiting."""
        import psutil  # `ping` is called often, and this never

        memory = psutil.virtual_memory()
        disk = psutil.disk_usage(str(context.root))
        own = psutil.Process()
        return {
            "cpu": {
                "count": os.cpu_count(),
                "percent": psutil.cpu_percent(interval=None),
                "load": list(os.getloadavg()),
            },
            "memory": {"total": memory.total, "available": memory.available, "own": own.memory_info().rss},
            "disk": {"total": disk.total, "free": disk.free},
            **await gate.stores(),
        }

    @tool("system.logs", reads=["system"])
    def logs(
        ctx: Context,
        lines: Lines = 50,
        level: Level = "info",
        contains: Contains = "",
    ) -> list[dict[str, Any]]:
        """The newest log lines of this project, oldest first. Traces stay in the file: they are for people."""
        wanted = ("debug", "info", "warning", "error", "critical")
        floor = wanted.index(level)
        found = [entry for entry in _tail(logfile) if wanted.index(entry.get("level", "info")) >= floor]
        hides = gate.policy.foreign(ctx.persona)  # what is another user's
        if hides is not None:
            found = [entry for entry in found if not hides(str(entry.get("persona", "")), json.dumps(entry))]
        if contains:
            found = [entry for entry in found if contains in str(gate.redact(entry.get("message", "")))]
        kept = found[-lines:]
        return [{name: value for name, value in entry.items() if name != "trace"} for entry in kept]

    return [ping, monitor, logs]


def _tail(logfile: Path) -> list[dict[str, Any]]:
    try:
        with logfile.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            raw = file.read().splitlines()
    except FileNotFoundError:
        return []
    entries = []
    for line in raw:
        try:
            entries.append(wire.loads_object(line))
        except CallError:
            continue  # a line cut in half by the tail
    return entries
