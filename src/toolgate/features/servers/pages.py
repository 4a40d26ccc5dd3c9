"""Console pages of the MCP servers behind the gate: health, what is held and why, and approving what was shown."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from toolgate.core.errors import NotFound
from toolgate.kits.web.auth import Human, form
from toolgate.kits.web.pages import Pages

FIELD = "tool:"


def add(router: APIRouter, console: Pages) -> None:
    gate = console.gate

    @router.get("/servers")
    async def servers(request: Request, who: Human) -> Response:
        return await console.page(request, who, "servers/servers.html", servers=gate.servers())

    @router.get("/servers/{name}")
    async def server(request: Request, who: Human, name: str) -> Response:
        found = _server(console, name)
        return await console.page(
            request, who, "servers/server.html", server=found, held=await _held(console, name)
        )

    @router.post("/servers/{name}/look")
    async def look(request: Request, who: Human, name: str) -> Response:
        """Start it, if need be, and ask what it offers; nothing it says can be called before it is approved."""
        _server(console, name)
        assert gate.upstream is not None
        await gate.upstream.discover(name)
        return console.to(f"/servers/{name}")

    @router.post("/servers/{name}/approve")
    async def approve(request: Request, who: Human, name: str) -> Response:
        """The form carries the hash of each definition that was shown; another one is refused by the gate."""
        found = _server(console, name)
        given = await form(request)
        shown = {
            field.removeprefix(FIELD): digest for field, digest in given.items() if field.startswith(FIELD)
        }
        done = await gate.approve_server(name, shown, channel=who.channel)
        if done.ok:
            return console.to("/servers")
        held = await _held(console, name)
        return await console.page(
            request, who, "servers/server.html", status=409, server=found, held=held, trouble=done.error
        )


def _server(console: Pages, name: str) -> dict[str, Any]:
    found = next((one for one in console.gate.servers() if one["name"] == name), None)
    if found is None:
        raise NotFound("there is no such server", "Servers lists them")
    return found


async def _held(console: Pages, name: str) -> list[dict[str, Any]]:
    found = console.gate.upstream.diff(name) if console.gate.upstream is not None else []
    return [one | (await console.diff(one["diff"]))._asdict() for one in found]
