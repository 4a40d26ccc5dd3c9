"""Servers to point the suite at: the fixtures themselves, and toolgate's whole site with the fixtures behind it.

The suite knows no tokens and calls the fixtures by their own names, so a layer in front of the site adds a persona's token,
and the server's name to what the suite asks for. All else passes as it is.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import toolgate
from toolgate.faces.http.app import create_app
from toolgate.faces.http.serve import listen, serve
from toolgate.faces.http.site import ServerSite
from toolgate.kits.web.tokens import Tokens

HERE = Path(__file__).parent
PATIENCE = 60.0
ROOMY = {"per_minute": 100_000, "per_hour": 1_000_000}
FIXTURE = re.compile(r"(test|json_schema)_\w+")
PREFIX, PLACE = "fixture.", "toolgate://servers/fixture/"


@asynccontextmanager
async def fixtures() -> AsyncIterator[str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(HERE / "fixture_server.py"), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )  # fmt: skip
    try:
        assert process.stdout is not None
        port = int(await asyncio.wait_for(process.stdout.readline(), PATIENCE))
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def gate_with(root: Path, servers: dict[str, Any]) -> AsyncIterator[toolgate.Gate]:
    """Ada may call the servers' tools without being asked."""
    config = {
        "version": 1,
        "default_persona": "ada",
        "personas": {"ada": {"phase": "contribute", "allow": [f"{name}.*" for name in servers]}},
        "limits": {"persona": ROOMY, "global": ROOMY},
        "servers": {name: {"pin": "first", **spec} for name, spec in servers.items()},
    }
    async with toolgate.open(root, config, "memory") as gate:
        if gate.upstream is not None:
            await gate.upstream.discover()
        yield gate


@asynccontextmanager
async def site(gate: toolgate.Gate, tokens: Tokens, layer: type[Named] | None = None) -> AsyncIterator[str]:
    """What `toolgate up` serves, at an address of its own."""
    place = ServerSite(gate, tokens)
    app: Any = create_app(gate, tokens, site=place)
    sock = listen("127.0.0.1", 0)
    started = asyncio.Event()
    served = layer(app, tokens.of("ada")) if layer else app
    task = asyncio.create_task(serve(served, place, sock, ready=started.set))
    try:
        await asyncio.wait_for(started.wait(), PATIENCE)
        yield f"http://127.0.0.1:{sock.getsockname()[1]}/mcp"
    finally:
        place.closing.set()
        await asyncio.wait_for(task, PATIENCE)


class Named:
    def __init__(self, app: Any, token: str) -> None:
        self._app = app
        self._token = f"Bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = [(key, self._name_in_header(key, value)) for key, value in scope["headers"] if key != b"content-length"]  # fmt: skip
        body = await _whole(receive)
        message = _renamed(body)
        headers += [(b"authorization", self._token), (b"content-length", str(len(message)).encode())]
        pending = [{"type": "http.request", "body": message, "more_body": False}]

        async def take() -> Any:
            return pending.pop() if pending else await receive()

        await self._app({**scope, "headers": headers}, take, lambda event: send(_restored(event)))

    @staticmethod
    def _name_in_header(key: bytes, value: bytes) -> bytes:
        return _theirs(value.decode("latin-1")).encode("latin-1") if key == b"mcp-name" else value


def _theirs(name: str) -> str:
    if FIXTURE.fullmatch(name):
        return PREFIX + name
    return PLACE + name if name.startswith("test://") else name


async def _whole(receive: Any) -> bytes:
    parts = b""
    while True:
        event = await receive()
        parts += event.get("body", b"")
        if event["type"] != "http.request" or not event.get("more_body"):
            return parts


def _renamed(body: bytes) -> bytes:
    try:
        message = json.loads(body)
    except ValueError:
        return body
    params = message.get("params") if isinstance(message, dict) else None
    if not isinstance(params, dict):
        return body
    for holder in (params, params.get("ref")):
        for key in ("name", "uri"):
            if isinstance(holder, dict) and isinstance(holder.get(key), str):
                holder[key] = _theirs(holder[key])
    return json.dumps(message).encode()


def _restored(event: Any) -> Any:
    if event["type"] == "http.response.start":
        return {**event, "headers": [one for one in event["headers"] if one[0].lower() != b"content-length"]}
    body = event.get("body", b"")
    for added in (PREFIX, PREFIX.replace(".", "_"), PLACE):
        body = body.replace(b'"' + added.encode(), b'"')
    return {**event, "body": body}
