"""Real clients (the official SDK's) and raw ones, over every transport and both eras."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx2
import mcp_types as types
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from toolgate.faces.mcp.http import McpApp
from toolgate.faces.mcp.protocol import CAPABILITIES_KEY, VERSION_KEY, ClientConnection
from toolgate.faces.mcp.server import McpServer
from toolgate.faces.mcp.stdio import Stdio

PATIENCE = 40.0
TOKENS = {"Bearer ada": "ada", "Bearer bob": "bob", "Bearer human": "human"}
Message = dict[str, Any]


async def soon(awaitable: Any) -> Any:
    return await asyncio.wait_for(awaitable, PATIENCE)


def authenticate(scope: Any) -> str | None:
    given = dict(scope["headers"]).get(b"authorization", b"").decode()
    return TOKENS.get(given)


@asynccontextmanager
async def over_stdio(server: McpServer, persona: str = "ada") -> AsyncIterator[Any]:
    """The server's stdio face at one end of two pipes, an SDK transport at the other."""
    (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
    stdio = Stdio(server, persona, ours_in, ours_out)
    serving = asyncio.create_task(stdio.serve())
    try:
        async with _pipes(theirs_in, theirs_out) as streams:
            yield streams
    finally:
        await soon(serving)
        os.close(ours_in)
        os.close(ours_out)


@asynccontextmanager
async def _pipes(source: int, target: int) -> AsyncIterator[Any]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 26)
    reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(source))
    into, incoming = anyio.create_memory_object_stream[Any](100)
    outgoing, out = anyio.create_memory_object_stream[Any](100)

    async def read() -> None:
        async with into:
            while line := await reader.readline():
                await into.send(SessionMessage(types.jsonrpc_message_adapter.validate_json(line)))

    async def write() -> None:
        async for message in out:
            text = message.message.model_dump_json(by_alias=True, exclude_none=True)
            await asyncio.to_thread(os.write, target, text.encode() + b"\n")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(write)
        try:
            yield incoming, outgoing
        finally:
            tasks.cancel_scope.cancel()
            os.close(target)
            reading.close()
            for each in (into, incoming, outgoing, out):
                await each.aclose()


@dataclass
class Site:
    url: str
    app: McpApp


@asynccontextmanager
async def site(server: McpServer, **options: Any) -> AsyncIterator[Site]:
    app = McpApp(server, authenticate, **options)
    config = uvicorn.Config(
        app, port=0, log_level="warning", lifespan="off", ws="none", timeout_graceful_shutdown=2
    )
    running = uvicorn.Server(config)
    running.capture_signals = _untouched  # type: ignore[method-assign] - the test runner keeps its own
    serving = asyncio.create_task(running.serve())
    try:
        async with asyncio.timeout(PATIENCE):
            while not running.started:
                await asyncio.sleep(0.005)
        port = running.servers[0].sockets[0].getsockname()[1]
        yield Site(f"http://127.0.0.1:{port}/mcp", app)
    finally:
        await app.close()
        running.should_exit = True
        await soon(serving)


def _untouched() -> Any:
    from contextlib import nullcontext

    return nullcontext()


@asynccontextmanager
async def over_http(server: McpServer, persona: str = "ada") -> AsyncIterator[Any]:
    async with site(server) as found, http_transport(found.url, persona) as transport:
        yield transport


@asynccontextmanager
async def http_transport(url: str, persona: str = "ada") -> AsyncIterator[Any]:
    headers = {"authorization": f"Bearer {persona}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as web,
        streamable_http_client(url, http_client=web) as transport,
    ):
        yield transport


@dataclass
class User:
    """Who sits at the client: answers forms as told, and remembers what was shown."""

    answers: list[Any] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        self.shown.append(params.message)
        self.asked.set()
        answer = self.answers.pop(0) if self.answers else None
        if answer is None:
            await asyncio.get_running_loop().create_future()  # thinks about it for ever
        if isinstance(answer, str):
            return types.ElicitResult(action=answer)  # type: ignore[arg-type]
        return types.ElicitResult(action="accept", content=answer)


APPROVE = {"answer": "approve"}
REFUSE = {"answer": "refuse", "reason": "not today"}
TRANSPORTS = {"stdio": over_stdio, "http": over_http}
MODES = {"handshake": "legacy", "stateless": "2026-07-28"}


@asynccontextmanager
async def client(
    server: McpServer, transport: str, era: str, persona: str = "ada", **more: Any
) -> AsyncIterator[Client]:
    async with (
        TRANSPORTS[transport](server, persona) as streams,
        Client(_ready(streams), mode=MODES[era], read_timeout_seconds=PATIENCE, **more) as connected,
    ):
        yield connected


@asynccontextmanager
async def _ready(streams: Any) -> AsyncIterator[Any]:
    yield streams


class Raw:
    """A client that says whatever it likes, straight to the protocol core."""

    def __init__(self, server: McpServer, persona: str = "ada") -> None:
        self.sent: asyncio.Queue[Message] = asyncio.Queue()
        self.connection = ClientConnection(server, persona, self._took)

    def _took(self, message: Message) -> None:
        from toolgate.faces.mcp.jsonrpc import write

        self.sent.put_nowait(json.loads(write(message)))

    async def next(self) -> Message:
        found: Message = await soon(self.sent.get())
        return found

    async def say(self, method: str, params: Any = None, ident: Any = 1) -> Message:
        message = {"jsonrpc": "2.0", "id": ident, "method": method}
        self.connection.receive(message if params is None else message | {"params": params})
        return await self.next()

    async def shake(self, capabilities: Message | None = None, version: str = "2025-11-25") -> Message:
        return await self.say(
            "initialize", {"protocolVersion": version, "capabilities": capabilities or {}}, "init"
        )

    async def call(self, name: str, args: Any = None, ident: Any = 1, **more: Any) -> Message:
        return await self.say("tools/call", {"name": name, "arguments": args or {}, **more}, ident)


def envelope(capabilities: Message | None = None) -> Message:
    return {VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: capabilities or {}}
