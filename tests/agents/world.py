"""A small project, a gate on it, and models that say what they are told to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from toolgate import Context, Tool, app, tool
from toolgate.agents.models.scripted import ScriptedModel
from toolgate.core.clock import SECOND
from toolgate.facade import Gate
from toolgate.features.agents.runs import Runs
from toolgate.storage.memory import MemoryBackend

PERSONAS: dict[str, Any] = {
    "ada": {"phase": "observe", "allow": ["t.*", "ai.ask"]},
    "scout": {"parent": "ada", "deny": ["t.act"]},
    "bob": {"phase": "observe"},
}
CART = '''"""A shopping cart."""


def total(prices, discount=0):
    subtotal = sum(prices)
    return subtotal - subtotal * discount / 10


def average(prices):
    return total(prices) / len(prices)
'''


def config(**more: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "version": 1,
        "default_persona": "ada",
        "personas": PERSONAS,
        "agents": {"model": "model", "rounds": 5},
    }
    return base | more


class Witness:
    """What really ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def tools(self) -> list[Tool]:
        @tool("t.look", reads=["system"])
        async def look(context: Context, x: str = "") -> str:
            """Look at something."""
            self.ran.append(f"look {x}")
            return f"seen {x}"

        @tool("t.next", reads=["system"])
        async def following(x: str = "") -> int:
            """Something else each time."""
            self.ran.append(f"next {x}")
            return len(self.ran)

        @tool("t.act", writes=["outside"])
        async def act(x: str = "") -> str:
            """Do something outside."""
            self.ran.append(f"act {x}")
            return f"did {x}"

        return [look, following, act]


def call(name: str, **args: Any) -> dict[str, Any]:
    return {"tool": name, "args": args}


def calls(*made: dict[str, Any], text: str = "", **more: Any) -> dict[str, Any]:
    return {"calls": list(made), "text": text, **more}


@asynccontextmanager
async def world(
    script: Sequence[Any] | Mapping[str, Sequence[Any]], root: Path, *, witness: Witness | None = None,
    channels: Sequence[Any] = (), database: Any = None, **more: Any,
) -> AsyncIterator[tuple[Gate, Runs]]:  # fmt: skip
    price = more.pop("price", None)
    tools = (witness or Witness()).tools()
    memory = database if database is not None else MemoryBackend()
    async with app.open(root, config(**more), memory, tools=tools, channels=channels) as gate:
        agents: Runs = gate.feature("agents")
        agents.models.given["model"] = ScriptedModel(script, "model", usd_per_million=price)
        yield gate, agents


HOUR = 3600 * SECOND
