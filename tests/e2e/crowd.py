"""Many clients at once, as cheap as they can be, so that what is loaded is the server: raw JSON over sockets and pipes."""

from __future__ import annotations

import asyncio
import json
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

PATIENCE = 60.0
"""Seconds that one answer may take when all ask at once on a slow machine."""
Wanted = tuple[str, dict[str, Any]]
"""A tool and its arguments."""


class Client(ABC):
    """One that makes a call and hands back the Result, whatever it came in."""

    @abstractmethod
    async def open(self) -> None: ...

    @abstractmethod
    async def call(self, tool: str, args: dict[str, Any]) -> dict[str, Any]: ...

    @abstractmethod
    async def close(self) -> None: ...


WHOLE = {"experimental": {"toolgate/structured": {}}}
"""The capability of a client that wants whole results beside their text."""


@dataclass
class Web(Client):
    """HTTP/1.1 on one connection that is kept."""

    port: int
    token: str
    numbers: int = 0

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)

    async def post(self, path: str, body: Any, **more: str) -> tuple[int, dict[str, str], bytes]:
        data = json.dumps(body).encode()
        headers = {
            "Host": f"127.0.0.1:{self.port}", "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json", "Content-Length": str(len(data)),
        } | more  # fmt: skip
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.writer.write(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + data)
        first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        told = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return int(first.split()[1]), told, await self.reader.readexactly(int(told["content-length"]))

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


class Api(Web):
    async def call(self, tool: str, args: dict[str, Any]) -> dict[str, Any]:
        status, _, body = await self.post("/api/v1/calls", {"tool": tool, "args": args})
        assert status == 200, body
        answer: dict[str, Any] = json.loads(body)
        return answer


class Mcp(Web):
    """The handshake era: a session."""

    session = ""

    async def open(self) -> None:
        await super().open()
        params = {"protocolVersion": "2025-11-25", "capabilities": WHOLE, "clientInfo": {"name": "crowd"}}
        _, told, _ = await self.say("initialize", params)
        self.session = told["mcp-session-id"]

    async def say(self, method: str, params: Any, **more: str) -> tuple[int, dict[str, str], bytes]:
        self.numbers += 1
        message = {"jsonrpc": "2.0", "id": self.numbers, "method": method, "params": params}
        return await self.post("/mcp", message, Accept="application/json, text/event-stream", **more)

    async def call(self, tool: str, args: dict[str, Any]) -> dict[str, Any]:
        return _structured((await self.say("tools/call", {"name": tool, "arguments": args}, **self.says(tool)))[2])  # fmt: skip

    def says(self, tool: str) -> dict[str, str]:
        return {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": "2025-11-25"}


class Stateless(Mcp):
    """The era without a handshake: every request says anew what it speaks."""

    meta: ClassVar[dict[str, Any]] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": WHOLE,
    }

    async def open(self) -> None:
        await Web.open(self)

    async def say(self, method: str, params: Any, **more: str) -> tuple[int, dict[str, str], bytes]:
        return await super().say(method, {**params, "_meta": self.meta}, **more)

    def says(self, tool: str) -> dict[str, str]:
        return {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool}


@dataclass
class Piped(Client):
    """A `toolgate mcp` of its own."""

    root: Path
    environment: dict[str, str]
    numbers: int = 0

    async def open(self) -> None:
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "toolgate", "mcp", cwd=self.root, env=self.environment, limit=1 << 22,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        params = {"protocolVersion": "2025-11-25", "capabilities": WHOLE, "clientInfo": {"name": "crowd"}}
        await self.say("initialize", params)

    async def say(self, method: str, params: Any) -> bytes:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.numbers += 1
        message = {"jsonrpc": "2.0", "id": self.numbers, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        return await self.process.stdout.readline()

    async def call(self, tool: str, args: dict[str, Any]) -> dict[str, Any]:
        return _structured(await self.say("tools/call", {"name": tool, "arguments": args}))

    async def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            code = await asyncio.wait_for(self.process.wait(), PATIENCE)
        finally:
            if self.process.returncode is None:
                self.process.kill()
                await self.process.wait()
        assert code == 0


def _structured(body: bytes) -> dict[str, Any]:
    answer = json.loads(body)
    assert "result" in answer, answer
    found: dict[str, Any] = answer["result"]["structuredContent"]
    return found


@dataclass
class Crowd:
    """Runs the clients side by side, each taking the next call as soon as it has its answer, and keeps what they were told."""

    clients: Sequence[Client]
    wanted: Callable[[int], Wanted]
    """The call of this number."""
    each: Callable[[int], None]
    """Told of the number of calls answered so far."""
    calls: list[str] = field(default_factory=list)
    shares: Counter[str] = field(default_factory=Counter)

    async def run(self, count: int) -> None:
        numbers = iter(range(count))
        async with asyncio.TaskGroup() as tasks:
            for client in self.clients:
                tasks.create_task(self._one(client, numbers))

    async def _one(self, client: Client, numbers: Iterator[int]) -> None:
        for number in numbers:
            async with asyncio.timeout(PATIENCE):
                answer = await client.call(*self.wanted(number))
            assert answer["ok"], answer
            self.calls.append(answer["meta"]["call_id"])
            self.shares[type(client).__name__] += 1
            self.each(len(self.calls))
