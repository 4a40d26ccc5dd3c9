"""The same project through each face. Every face is asked in its own way and answers in the one shape."""

from __future__ import annotations

import asyncio
import io
import json
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Protocol

import httpx2

import toolgate
from toolgate.core.errors import CallError
from toolgate.faces.cli.main import main
from toolgate.faces.http.app import create_app
from toolgate.faces.http.serve import listen, serve
from toolgate.faces.http.site import ServerSite
from toolgate.kits.web.tokens import Tokens

PATIENCE = 60.0
Json = dict[str, Any]


class Face(Protocol):
    """Calls give a Result; what humans do gives {"ok": True} or the error as {code, message, fix}."""

    def call(self, tool: str, args: Any, *, persona: str = "", key: str = "") -> Json: ...

    def answer(self, question: str, answer: str, reason: str = "") -> Json: ...

    def pause(self, persona: str) -> Json: ...

    def resume(self, persona: str) -> Json: ...

    def undo(self, event: int) -> Json: ...


class Library:
    def __init__(self, gate: toolgate.Gate, loop: asyncio.AbstractEventLoop) -> None:
        self._gate, self._loop = gate, loop

    def call(self, tool: str, args: Any, *, persona: str = "", key: str = "") -> Json:
        return self._do(
            lambda gate: gate.call(tool, args, persona=persona or None, key=key or None, wait=False)
        ).as_dict()  # type: ignore[no-any-return]

    def answer(self, question: str, answer: Any, reason: str = "") -> Json:
        return self._try(lambda gate: gate.answer(question, answer, reason=reason))

    def pause(self, persona: str) -> Json:
        return self._try(lambda gate: gate.pause(persona))

    def resume(self, persona: str) -> Json:
        return self._try(lambda gate: gate.resume(persona))

    def undo(self, event: int) -> Json:
        return self._do(lambda gate: gate.undo(event)).as_dict()  # type: ignore[no-any-return]

    def _try(self, work: Callable[[toolgate.Gate], Coroutine[Any, Any, Any]]) -> Json:
        try:
            self._do(work)
        except CallError as error:
            return {"code": error.code.value, "message": error.message, "fix": error.fix}
        return {"ok": True}

    def _do(self, work: Callable[[toolgate.Gate], Coroutine[Any, Any, Any]]) -> Any:
        return asyncio.run_coroutine_threadsafe(work(self._gate), self._loop).result(PATIENCE)


class CommandLine:
    def __init__(self, root: Path) -> None:
        self._root = root

    def call(self, tool: str, args: Any, *, persona: str = "", key: str = "") -> Json:
        more = [*(["--persona", persona] if persona else []), *(["--key", key] if key else [])]
        return self._run("call", tool, json.dumps(args), "--no-wait", *more)

    def answer(self, question: str, answer: str, reason: str = "") -> Json:
        return _said(self._run("approvals", question, answer, *(["--reason", reason] if reason else [])))

    def pause(self, persona: str) -> Json:
        return _said(self._run("pause", persona))

    def resume(self, persona: str) -> Json:
        return _said(self._run("resume", persona))

    def undo(self, event: int) -> Json:
        return self._run("undo", str(event), "--yes")

    def _run(self, *args: str) -> Json:
        out = io.StringIO()
        before, sys.stdin = sys.stdin, io.StringIO()
        try:
            with redirect_stdout(out), redirect_stderr(io.StringIO()):
                main([*args, "--root", str(self._root), "--json"])
        finally:
            sys.stdin = before
        found: Json = json.loads(out.getvalue())
        return found


def _said(result: Json) -> Json:
    return {"ok": True} if result["error"] is None else result["error"]


class Http:
    def __init__(self, url: str, tokens: Tokens) -> None:
        self._tokens = tokens
        self._client = httpx2.Client(base_url=url, timeout=PATIENCE)

    def call(self, tool: str, args: Any, *, persona: str = "", key: str = "") -> Json:
        body = {"tool": tool, "args": args} | ({"key": key} if key else {})
        return self._send("/calls", body, persona or "builder")

    def answer(self, question: str, answer: str, reason: str = "") -> Json:
        return _done(self._send(f"/approvals/{question}", {"answer": answer, "reason": reason}))

    def pause(self, persona: str) -> Json:
        return _done(self._send("/pause", {"persona": persona}))

    def resume(self, persona: str) -> Json:
        return _done(self._send("/resume", {"persona": persona}))

    def undo(self, event: int) -> Json:
        return self._send(f"/undo/{event}", {})

    def _send(self, path: str, body: Json, who: str = "human") -> Json:
        headers = {"Authorization": f"Bearer {self._tokens.of(who)}"}
        found: Json = self._client.post(f"/api/v1{path}", json=body, headers=headers).json()
        return found

    def close(self) -> None:
        self._client.close()


class Mcp(Http):
    """Calls over MCP at /mcp, by a client that can show no question; people answer over HTTP."""

    def call(self, tool: str, args: Any, *, persona: str = "", key: str = "") -> Json:
        assert not key, "MCP has no keys"
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"experimental": {"toolgate/structured": {}}},
            "clientInfo": {"name": "t", "version": "1"},
        }
        headers = {
            "Authorization": f"Bearer {self._tokens.of(persona or 'builder')}",
            "Accept": "application/json, text/event-stream",
        }
        opened = self._rpc("initialize", hello, headers)
        headers |= {"Mcp-Session-Id": opened.headers["mcp-session-id"], "Mcp-Protocol-Version": "2025-11-25"}
        answer = self._rpc("tools/call", {"name": tool, "arguments": args}, headers)
        self._client.delete("/mcp", headers=headers)
        lines = [
            line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: {")
        ]
        message: Json = json.loads(lines[-1]) if lines else answer.json()
        result: Json = message["result"]["structuredContent"]
        return result

    def _rpc(self, method: str, params: Json, headers: dict[str, str]) -> httpx2.Response:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self._client.post("/mcp", json=body, headers=headers)


def _done(body: Json) -> Json:
    return {name: body[name] for name in ("code", "message", "fix")} if "code" in body else {"ok": True}


@contextmanager
def elsewhere(work: Callable[[Ready], Coroutine[Any, Any, None]]) -> Iterator[Any]:
    """Run `work` in a thread with a loop of its own, from when it is ready until the block ends."""
    ready = Ready()
    thread = threading.Thread(target=lambda: asyncio.run(work(ready)))
    thread.start()
    try:
        assert ready.event.wait(PATIENCE)
        yield ready
    finally:
        ready.end()
        thread.join(PATIENCE)
        assert not thread.is_alive()


class Ready:
    """What the thread tells once it works, and how it is told to end."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.value: Any = None
        self.end: Callable[[], None] = lambda: None

    def say(self, value: Any, closing: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        self.end = lambda: loop.call_soon_threadsafe(closing.set)  # type: ignore[assignment]
        self.value = value
        self.event.set()


@contextmanager
def library(root: Path) -> Iterator[Face]:
    async def run(ready: Ready) -> None:
        closing = asyncio.Event()
        async with toolgate.open(root) as gate:
            ready.say(Library(gate, asyncio.get_running_loop()), closing)
            await closing.wait()

    with elsewhere(run) as ready:
        yield ready.value


@contextmanager
def command_line(root: Path) -> Iterator[Face]:
    yield CommandLine(root)


@contextmanager
def http(root: Path, kind: type[Http] = Http) -> Iterator[Face]:
    tokens = Tokens(root.parent / "tokens.json")

    async def run(ready: Ready) -> None:
        sock = listen("127.0.0.1", 0)
        face = kind(f"http://127.0.0.1:{sock.getsockname()[1]}", tokens)
        async with toolgate.open(root) as gate:
            site = ServerSite(gate, tokens)
            app = create_app(gate, tokens, site=site)
            await serve(app, site, sock, ready=lambda: ready.say(face, site.closing))

    with elsewhere(run) as ready:
        yield ready.value
        ready.value.close()


@contextmanager
def mcp(root: Path) -> Iterator[Face]:
    with http(root, Mcp) as face:
        yield face


FACES = {"library": library, "command line": command_line, "http": http, "mcp": mcp}
"""A new face joins here, and is held to all of it."""
__all__ = ["FACES", "Face"]
