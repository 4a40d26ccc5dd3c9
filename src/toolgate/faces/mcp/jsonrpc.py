"""JSON-RPC 2.0 as MCP uses it: one message read, one message written, and the errors there are. No I/O."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

import orjson

from toolgate.core import wire
from toolgate.core.errors import TooLarge
from toolgate.faces.mcp.greeting import is_id

Id = str | int
Message = dict[str, Any]

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
REFUSED = -32000
"""Ours: the gate refused what a resource needed, or too much is under way."""
RESOURCE_NOT_FOUND = -32002
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
DROPPED = frozenset({"notifications/progress", "notifications/message", "notifications/resources/updated"})
"""What a client that does not keep up misses, so that nothing piles up."""

MAX_BYTES = wire.MAX_BYTES
"""The largest message taken: no larger than the arguments of a call may be."""


class RpcError(Exception):
    """Becomes the error of a response."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data

    def as_message(self, ident: Id | None) -> Message:
        error: Message = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return {"jsonrpc": "2.0", "id": ident, "error": error}


@dataclass(slots=True)
class RpcRequest:
    id: Id
    method: str
    params: Message


@dataclass(slots=True)
class RpcNotification:
    method: str
    params: Message


@dataclass(slots=True)
class RpcReply:
    """What the client answers to a request of ours."""

    id: Id
    result: Any
    error: Any


def read(raw: bytes | bytearray | memoryview) -> Any:
    """Any JSON value. NaN, bad UTF-8, lone surrogates and nesting beyond a thousand levels are no JSON here."""
    if len(raw) > MAX_BYTES:
        raise too_large()
    try:
        wire.check_size(bytes(raw))
    except TooLarge as error:
        raise RpcError(INVALID_REQUEST, f"Invalid request: {error.message}") from None
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise RpcError(PARSE_ERROR, f"Parse error: {error}") from None


def too_large() -> RpcError:
    return RpcError(INVALID_REQUEST, f"Invalid request: the message is larger than {MAX_BYTES:,} bytes")


def classify(message: Any) -> RpcRequest | RpcNotification | RpcReply:
    """Which of the three a decoded message is; an RpcError carries what is wrong with it."""
    if isinstance(message, list):
        raise RpcError(
            INVALID_REQUEST, "Invalid request: batches are not part of MCP; send one message a line"
        )
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'Invalid request: a message is an object with "jsonrpc": "2.0"')
    method = message.get("method")
    if method is None:
        return _reply(message)
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "Invalid request: the method is not a text")
    params = message.get("params")
    if params is None:
        params = {}
    elif not isinstance(params, dict):
        raise RpcError(INVALID_REQUEST, "Invalid request: params is not an object")
    if "id" not in message:
        return RpcNotification(method, params)
    if not is_id(message["id"]):
        raise RpcError(INVALID_REQUEST, "Invalid request: an id is a text or a whole number")
    return RpcRequest(message["id"], method, params)


def _reply(message: Message) -> RpcReply:
    ident: Any = message.get("id")
    if not is_id(ident) or ("result" in message) == ("error" in message):
        raise RpcError(INVALID_REQUEST, "Invalid request: neither a request nor an answer")
    return RpcReply(ident, message.get("result"), message.get("error"))


def id_of(message: Any) -> Id | None:
    """The id to answer to, where a broken message has one that can be used."""
    found = message.get("id") if isinstance(message, dict) else None
    return found if is_id(found) else None


def write(message: Message) -> bytes:
    """One line without its end. A result may hold what orjson cannot: integers beyond 64 bits."""
    try:
        return orjson.dumps(message)
    except (orjson.JSONEncodeError, RecursionError):
        return json.dumps(message, default=_plain, separators=(",", ":")).encode()


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
