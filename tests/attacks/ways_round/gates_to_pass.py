"""What the attacks on the gate by programs share: a gate with two personas, and a human who approves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import toolgate
from toolgate import Gate
from toolgate.storage.port import Filter, Row

PERSONAS: dict[str, Any] = {"builder": {"phase": "contribute"}, "other": {"phase": "contribute"}}
VALUE = "hunter2-Zq83kfPw"


@asynccontextmanager
async def opened(root: Path, *rules: dict[str, Any], **more: Any) -> AsyncIterator[Gate]:
    config = {
        "version": 1,
        "default_persona": "builder",
        "personas": PERSONAS,
        "policy": {"rules": list(rules)},
    }
    async with toolgate.open(root, config | more) as gate:
        yield gate


async def approved(gate: Gate, tool: str, args: dict[str, Any]) -> Any:
    """The data of a call that a human approves, whatever it asks."""
    calling = asyncio.ensure_future(gate.call(tool, args))
    while not calling.done():
        for question in await gate.approvals():
            await gate.answer(question.id, "approve")
        await asyncio.sleep(0.01)
    result = calling.result()
    assert result.ok, result.error
    return result.data


async def started(gate: Gate, call: str) -> Row:
    (row,) = [row for row in await gate.events(Filter(call=call)) if row.kind == "started"]
    return row
