"""A program that dies in the middle of a call, after or before the effect: dies.py PROJECT after|before"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import toolgate

CONFIG = {"version": 1, "personas": {"helper": {"allow": ["mark.make"]}}, "default_persona": "helper"}


def tool(project: Path, die: str = "") -> toolgate.Tool:
    def made(ctx: toolgate.Context) -> bool:
        return (project / ctx.call_id).exists()

    @toolgate.tool("mark.make", writes=["outside"], reconcile=made)
    async def make(ctx: toolgate.Context) -> str:
        if die == "before":
            os._exit(9)
        (project / ctx.call_id).touch()
        if die == "after":
            os._exit(9)
        return ctx.call_id

    return make


async def main(project: Path, die: str) -> None:
    async with toolgate.open(project, CONFIG, tools=[tool(project, die)]) as gate:
        await gate.call("mark.make", key="once")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
