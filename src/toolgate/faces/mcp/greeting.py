"""The answer to `initialize`: what this server says of itself, before the gate is open.

A client waits for this answer, and it depends on nothing but the request, so it is given before anything else is loaded.
This module therefore imports next to nothing, not even orjson, which brings half the standard library. Whatever it does
not understand it leaves, unanswered, to `protocol`.
"""

from __future__ import annotations

import json
import os
import select
from typing import Any

from toolgate.version import VERSION

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
"""In the `_meta` of every request of the stateless era."""
INFO = {"name": "toolgate", "title": "toolgate", "version": VERSION}
INSTRUCTIONS = """\
Every call passes a gate: policy decides, a human may be asked, and what happened is recorded. \
An error is a code, what happened, and a fix. \
`pending`: a human has been asked; make the same call again once it is approved. \
`denied`: a human refused; do not repeat it, go on without it. \
`not_allowed`: policy refuses it for this persona; `tools_help` says why. \
Paths are relative to the project (`src/a.py`) or to a mount (`scratch:a.txt`). \
There are more tools than are listed: `tools_find` knows them, `tools_call` calls them."""
CAPABILITIES: dict[str, Any] = {
    "tools": {"listChanged": True},
    "resources": {},
    "prompts": {},
    "completions": {},
}
OF_SERVERS: dict[str, Any] = {"resources": {"subscribe": True}, "logging": {}}
"""What there is only with servers behind the gate."""
LONGEST_ID = 1024
_MOST_BYTES = 16 << 10
"""Of a first message that is answered here."""


def capabilities(servers: bool) -> dict[str, Any]:
    return CAPABILITIES | OF_SERVERS if servers else CAPABILITIES


def initialized(version: str, servers: bool) -> dict[str, Any]:
    return {
        "protocolVersion": version,
        "capabilities": capabilities(servers),
        "serverInfo": INFO if version >= HANDSHAKE[2] else {k: v for k, v in INFO.items() if k != "title"},
        "instructions": INSTRUCTIONS,
    }


def agreed(asked: str) -> str:
    return asked if asked in HANDSHAKE else HANDSHAKE[-1]


class Greeting:
    """What has been read of a client so far, and whether its `initialize` is answered."""

    def __init__(self, source: int, target: int, servers: bool) -> None:
        self.source, self.target, self.servers = source, target, servers
        self.read = b""
        """Every byte that was taken from the client; the first line too, if it was answered here."""
        self.answered = False
        self._looked = False

    def look(self) -> None:
        """Answer the first message if it is there and is a plain `initialize`. Never waits, never raises."""
        try:
            while not self._looked and select.select((self.source,), (), (), 0)[0]:
                data = os.read(self.source, 1 << 16)
                self.read += data
                self._looked = not data or b"\n" in self.read or len(self.read) > _MOST_BYTES
            if self._looked and not self.answered and (answer := self._answer()) is not None:
                os.write(self.target, answer)  # less than a pipe holds
                self.answered = True
        except (OSError, ValueError):
            self._looked = True  # whoever serves finds out for itself

    def _answer(self) -> bytes | None:
        line, _, _ = self.read.partition(b"\n")
        if len(line) > _MOST_BYTES:
            return None
        try:
            message: Any = (
                json.loads(line) if b"\\" not in line else None
            )  # escapes are left to a stricter reader
        except (ValueError, RecursionError):
            return None
        asked = _asked(message)
        if asked is None:
            return None
        result = initialized(agreed(asked), self.servers)
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return json.dumps(answer, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"

    def refuse(self, why: str) -> None:
        """The gate does not open: say so to what the client has asked since its `initialize`."""
        from toolgate.faces.mcp import jsonrpc

        if not self.answered:
            return  # it sees that nobody is there
        if select.select((self.source,), (), (), 0)[0]:
            self.read += os.read(self.source, _MOST_BYTES)
        for line in self.read.split(b"\n")[1:]:
            try:
                message = jsonrpc.read(line)
            except jsonrpc.RpcError:
                continue
            ident = jsonrpc.id_of(message)
            if ident is not None and "method" in message:
                answer = jsonrpc.RpcError(jsonrpc.REFUSED, why).as_message(ident)
                os.write(self.target, jsonrpc.write(answer) + b"\n")


def _asked(message: Any) -> str | None:
    """The version that a well-formed `initialize` asks for; None for anything else."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return None
    params, ident = message.get("params"), message.get("id")
    if message.get("method") != "initialize" or not isinstance(params, dict) or not is_id(ident):
        return None
    version, meta = params.get("protocolVersion"), params.get("_meta")
    if isinstance(meta, dict) and VERSION_KEY in meta:
        return None
    return version if isinstance(version, str) and isinstance(params.get("capabilities"), dict) else None


def is_id(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_ID
    return isinstance(value, int) and not isinstance(value, bool)
