"""The headers of an MCP request: whose page it comes from, what it claims to hold, and whether that is so."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable

from toolgate.faces.mcp.greeting import VERSION_KEY
from toolgate.faces.mcp.jsonrpc import HEADER_MISMATCH, INVALID_REQUEST, Message, RpcError, RpcRequest
from toolgate.faces.mcp.protocol import MODERN, envelope, unsupported

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?")
_ENCODED = re.compile(r"=\?base64\?(.*)\?=")
_ROUTING = ("mcp-protocol-version", "mcp-method", "mcp-name")
Pairs = Iterable[tuple[bytes, bytes]]


class HttpError(Exception):
    def __init__(self, status: int, body: Message | None = None, headers: Pairs = ()) -> None:
        super().__init__(status)
        self.status, self.body, self.headers = status, body, tuple(headers)


class Headers:
    def __init__(self, pairs: Pairs) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name.decode("latin-1").lower(), []).append(
                value.decode("latin-1").strip()
            )

    def get(self, name: str) -> str | None:
        found = self._values.get(name)
        return found[0] if found else None

    def twice(self, name: str) -> bool:
        return len(self._values.get(name, ())) > 1

    def accepts(self, kind: str) -> bool:
        said = self._values.get("accept")
        if not said:
            return True
        wanted = {part.split(";")[0].strip().lower() for part in ",".join(said).split(",")}
        return bool(wanted & {kind, kind.split("/")[0] + "/*", "*/*"})

    @property
    def accepts_stream(self) -> bool:
        return self.accepts("text/event-stream")


def check_place(found: Headers, hosts: frozenset[str], origins: frozenset[str]) -> None:
    """A page of somebody else's must not reach us through the user's browser, by whatever name it calls us."""
    host = found.get("host") or ""
    if found.twice("host") or (
        _name(host) not in LOOPBACK and host not in hosts and _name(host) not in hosts
    ):
        raise HttpError(421, refusal(f"the host {host[:100]!r} is not served here"))
    origin = found.get("origin")
    if origin is None or origin in origins:
        return
    if found.twice("origin") or origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower()):
        raise HttpError(403, refusal(f"the origin {origin[:100]!r} may not call this"))


def _name(host: str) -> str:
    found = _HOST.fullmatch(host)
    return found[1].strip("[]").lower() if found else ""


def check_post(found: Headers) -> None:
    kind = (found.get("content-type") or "").split(";")[0].strip().lower()
    if kind != "application/json":
        raise HttpError(415, refusal("send application/json"))
    if not found.accepts("application/json"):
        raise HttpError(406, refusal("accept application/json and text/event-stream"))


def check_version(found: Headers) -> None:
    version = found.get("mcp-protocol-version") or ""
    if version not in MODERN:
        raise HttpError(400, unsupported(version).as_message(None))


def check_routing(found: Headers, request: RpcRequest) -> None:
    """What an intermediary read in the headers must be what we read in the body."""
    for name in _ROUTING:
        if found.twice(name):
            raise RpcError(HEADER_MISMATCH, f"Header mismatch: {name} appears more than once")
    meta = request.params.get("_meta")
    if not isinstance(meta, dict) or VERSION_KEY not in meta:
        envelope(request.params)  # says what is missing
        return
    if found.get("mcp-protocol-version") != meta[VERSION_KEY]:
        raise RpcError(
            HEADER_MISMATCH, "Header mismatch: mcp-protocol-version is not the version of the body"
        )
    if found.get("mcp-method") != request.method:
        raise RpcError(HEADER_MISMATCH, "Header mismatch: mcp-method is not the method of the body")
    named = _NAMED.get(request.method)
    value = request.params.get(named) if named else None
    if value is not None and _decoded(found.get("mcp-name")) != value:
        raise RpcError(HEADER_MISMATCH, f"Header mismatch: mcp-name is not the {named} of the body")


def _decoded(value: str | None) -> str | None:
    encoded = _ENCODED.fullmatch(value) if value is not None else None
    if encoded is None:
        return value
    try:
        raw = base64.b64decode(encoded[1], validate=True)
        return raw.decode() if base64.b64encode(raw).decode() == encoded[1] else None
    except (binascii.Error, ValueError):
        return None


def refusal(text: str) -> Message:
    return RpcError(INVALID_REQUEST, f"Invalid request: {text}").as_message(None)
