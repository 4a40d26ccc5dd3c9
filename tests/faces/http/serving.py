"""A real server on 127.0.0.1 with a gate that has one tool which asks, and clients with each kind of token."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

import toolgate
from toolgate.faces.http.app import create_app
from toolgate.faces.http.serve import listen, serve
from toolgate.faces.http.site import ServerSite
from toolgate.kits.web.tokens import Tokens
from toolgate.storage.port import Filter

PATIENCE = 40.0
CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "helper",
    "personas": {
        "helper": {"phase": "experiment"},
        "other": {"phase": "experiment"},
        "mute": {"phase": "observe"},
    },
}


@dataclass
class House:
    """The server, its gate, and what really ran."""

    gate: toolgate.Gate
    site: ServerSite
    url: str
    opened: list[str] = field(default_factory=list)
    hold: asyncio.Event = field(default_factory=asyncio.Event)
    running: asyncio.Event = field(default_factory=asyncio.Event)

    def client(self, name: str = "", **more: Any) -> httpx2.AsyncClient:
        """Speaks with the token of this name; without one, with none."""
        headers = {"Authorization": f"Bearer {self.site.tokens.of(name)}"} if name else {}
        headers |= more.pop("headers", {})
        return httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=PATIENCE, **more)

    @asynccontextmanager
    async def browser(self) -> AsyncIterator[httpx2.AsyncClient]:
        """Logged in, as after opening the printed address."""
        async with self.client() as client:
            answer = await client.get("/", params={"token": self.site.tokens.of("human")})
            assert answer.status_code == 303
            yield client

    @property
    def csrf(self) -> dict[str, str]:
        """What the newest session's pages say in forms."""
        sessions = list(self.site.sessions._open.values())
        return {"X-CSRF-Token": sessions[-1].csrf}

    async def kinds(self) -> list[str]:
        return [row.kind for row in reversed(await self.gate.events())]

    async def refusals(self) -> list[str]:
        """What the ledger says was tried."""
        rows = await self.gate.events(Filter(kinds=("rejected",)))
        return [json.loads(row.body)["error"] for row in rows]


@asynccontextmanager
async def house(
    root: Path, config: dict[str, Any] | None = None, tools: Sequence[toolgate.Tool] = (), **more: Any
) -> AsyncIterator[House]:
    tokens = Tokens(root.parent / "tokens" / "t.json")
    made: list[House] = []

    @toolgate.tool("door.open", writes=["outside"])
    async def open_door(room: str) -> str:
        """Open the door of a room."""
        made[0].opened.append(room)
        return f"the door of {room} is open"

    @toolgate.tool("door.hold", reads=["system"])
    async def hold() -> str:
        """Stay until told to go on."""
        made[0].running.set()
        await made[0].hold.wait()
        return "done"

    @toolgate.tool("door.strange", reads=["system"])
    async def strange() -> dict[str, Any]:
        """What JSON libraries stumble over."""
        return {"large": 2**200, "half": "\ud800", "bell": "\x07", "not a number": float("nan")}

    async with toolgate.open(root, config or CONFIG, tools=[open_door, hold, strange, *tools]) as gate:
        site = ServerSite(gate, tokens)
        sock = listen("127.0.0.1", 0)
        one = House(gate, site, f"http://127.0.0.1:{sock.getsockname()[1]}")
        made.append(one)
        started = asyncio.Event()
        app = create_app(gate, tokens, site=site, **more)
        task = asyncio.create_task(serve(app, site, sock, ready=started.set))
        try:
            waiting = asyncio.create_task(started.wait())
            await asyncio.wait((task, waiting), timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
            assert started.is_set(), task
            yield one
        finally:
            site.closing.set()
            await asyncio.wait_for(task, PATIENCE)
