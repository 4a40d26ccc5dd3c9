"""The gateway as a client of the suite's servers: it calls every tool that it finds there, through a gate."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from toolgate.core.caller import Caller, Elicitation, Reply

from .standing import HERE, gate_with

EXAMPLES: dict[str, Any] = {
    "string": "us-west1", "integer": 5, "number": 3, "boolean": True, "array": [], "object": {}, "null": None,
}  # fmt: skip
SCHEMA, ECHO = "theirs.json_schema_2020_12_tool", "theirs.json_schema_echo"


@asynccontextmanager
async def as_client(place: Path) -> AsyncIterator[str]:
    """The command by which the suite reaches it. A socket's name may not be long, so it lies in a short place."""
    roots = iter(range(1000))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = json.loads(await reader.readline())
            root = place / f"project-{next(roots)}"
            root.mkdir()
            await _call_all(root, asked["address"], asked["context"])
            writer.write(b"done")
            await writer.drain()
        finally:
            writer.close()

    path = f"{place}/s"
    async with await asyncio.start_unix_server(serve, path):
        yield f"{sys.executable} -I -S {HERE / 'client_program.py'} {path}"


async def _call_all(root: Path, address: str, context: dict[str, Any]) -> None:
    async with gate_with(root, {"theirs": {"url": address, "timeout_s": 15}}) as gate:
        found = {
            spec.name: spec.input_schema for spec in gate.tools("ada") if spec.name.startswith("theirs.")
        }
        # a field that is null breaks the tool's own schema, and would not be sent: it is left out instead
        wanted = [
            (f"theirs.{one['name']}", {key: value for key, value in one["arguments"].items() if value is not None})
            for one in context.get("toolCalls", ())
        ]  # fmt: skip
        user = Caller(answer=_fill_in)
        for name, args in wanted or [(name, _arguments(schema)) for name, schema in found.items()]:
            given = {"schema": found[SCHEMA]} if name == ECHO else args
            await gate.call(name, given, persona="ada", caller=user)


async def _fill_in(question: Elicitation) -> Reply:
    """As a user who leaves every field as it was offered."""
    fields = question.schema.get("properties", {})
    return Reply("accept", {name: one.get("default", True) for name, one in fields.items()})


def _arguments(schema: dict[str, Any]) -> dict[str, Any]:
    fields = schema.get("properties", {})
    return {
        name: EXAMPLES.get(one.get("type", ""), "x") for name, one in fields.items() if isinstance(one, dict)
    }
