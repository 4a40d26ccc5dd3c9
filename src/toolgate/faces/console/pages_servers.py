"""The MCP servers behind the gate: their health, what of them is held and why, and approving what was shown."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from toolgate.core.errors import NotFound
from toolgate.faces.console.console import Console
from toolgate.faces.console.marks import draw
from toolgate.faces.console.question import drawn
from toolgate.faces.http.auth import Human, form
from toolgate.kits import diffs

FIELD = "tool:"


def add(pages: APIRouter, console: Console) -> None:
    gate = console.gate

    @pages.get("/servers")
    async def servers(request: Request, who: Human) -> Response:
        return await console.page(request, who, "servers.html", servers=gate.servers())

    @pages.get("/servers/{name}")
    async def server(request: Request, who: Human, name: str) -> Response:
        return await console.page(
            request, who, "server.html", server=_server(console, name), held=await _held(console, name)
        )

    @pages.post("/servers/{name}/look")
    async def look(request: Request, who: Human, name: str) -> Response:
        """Start it, if need be, and ask what it offers; nothing it says can be called before it is approved."""
        _server(console, name)
        assert gate.upstream is not None
        await gate.upstream.discover(name)
        return console.to(f"/servers/{name}")

    @pages.post("/servers/{name}/approve")
    async def approve(request: Request, who: Human, name: str) -> Response:
        """The form carries the hash of each definition that was shown; another one is refused by the gate."""
        _server(console, name)
        given = await form(request)
        shown = {
            field.removeprefix(FIELD): digest for field, digest in given.items() if field.startswith(FIELD)
        }
        done = await gate.approve_server(name, shown, channel=who.channel)
        if not done.ok:
            held = await _held(console, name)
            return await console.page(
                request,
                who,
                "server.html",
                status=409,
                server=_server(console, name),
                held=held,
                trouble=done.error,
            )
        return console.to("/servers")


def _server(console: Console, name: str) -> dict[str, Any]:
    found = next((one for one in console.gate.servers() if one["name"] == name), None)
    if found is None:
        raise NotFound("there is no such server", "Servers lists them")
    return found


async def _held(console: Console, name: str) -> list[dict[str, Any]]:
    found = console.gate.upstream.diff(name) if console.gate.upstream is not None else []
    made = []
    for one in found:
        files = await drawn(diffs.parse(one["diff"]), console.painter)
        plain = [] if files else [draw(line, ()) for line in one["diff"].split("\n")]
        made.append({**one, "files": files, "plain": plain})
    return made
