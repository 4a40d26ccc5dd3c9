"""One client of the server: which era it speaks, what is under way for it, what it was asked. No I/O.

Above it a transport hands in decoded messages and a way to send; below it `server.py` knows the methods. The era is
decided by the client's first request, once: `initialize` (2024-11-05 … 2025-11-25), or an envelope in `_meta`
(2026-07-28), in which every request says anew who asks and what it can do.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolgate.core.call import new_id
from toolgate.faces.mcp.greeting import VERSION_KEY, agreed
from toolgate.faces.mcp.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    REFUSED,
    UNSUPPORTED_VERSION,
    Id,
    Message,
    RpcError,
    RpcNotification,
    RpcReply,
    RpcRequest,
    classify,
    id_of,
)  # fmt: skip

if TYPE_CHECKING:
    from toolgate.faces.mcp.request_state import SuspendedCall
    from toolgate.faces.mcp.server import McpServer

log = logging.getLogger("toolgate.mcp")
MODERN = ("2026-07-28",)
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
LOG_KEY = "io.modelcontextprotocol/logLevel"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
STRUCTURED_KEY = "toolgate/structured"
"""In the experimental capabilities of a client that wants whole results, or in the `_meta` of one request."""
MOST_AT_ONCE = 256
Send = Callable[[Message], None]


class Gone(Exception):
    """The client cannot answer any more, or would not."""


@dataclass(slots=True)
class Exchange:
    """One request under way: who asks, in which era, and the way back to its client."""

    connection: ClientConnection
    id: Id
    method: str
    params: Message
    send: Send
    modern: bool
    capabilities: frozenset[str]
    client: str
    suspended: SuspendedCall | None = None
    """How a client of the stateless era is asked while its call runs; where that is possible."""

    @property
    def persona(self) -> str:
        return self.connection.persona

    @property
    def conversation(self) -> str:
        """The client's session; a stateless client has none."""
        return "" if self.modern else self.connection.session

    @property
    def meta(self) -> Message:
        found = self.params.get("_meta")
        return found if isinstance(found, dict) else {}

    @property
    def can_elicit(self) -> bool:
        """Whether its user can be shown a form."""
        return "elicitation" in self.capabilities

    @property
    def can_sample(self) -> bool:
        return "sampling" in self.capabilities

    @property
    def can_be_asked(self) -> bool:
        return not self.modern or self.suspended is not None

    @property
    def log_level(self) -> str:
        """What the client wants to hear: set once in the handshake era, with each request in the stateless one."""
        said = self.meta.get(LOG_KEY) if self.modern else self.connection.log_level
        return said if isinstance(said, str) else ""

    def notify(self, method: str, params: Message) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def ask(self, method: str, params: Message) -> Message:
        """A request of ours to the client, in the stateless era by an unfinished result."""
        if self.suspended is not None:
            return await self.suspended.ask(method, params)
        return await self.connection.ask(method, params, self.send)


class ClientConnection:
    def __init__(self, server: McpServer, persona: str, send: Send) -> None:
        self.server, self.persona, self.send = server, persona, send
        self.version = ""
        """What the handshake agreed on."""
        self.modern: bool | None = None
        """None until the first request decides."""
        self.capabilities: frozenset[str] = frozenset()
        self.client = ""
        self.log_level = ""
        """The least severe that it wants to hear of; empty until it says so."""
        self.subscriptions: dict[str, Callable[[], Awaitable[None]]] = {}
        self.running: dict[Id, asyncio.Task[None]] = {}
        self.listening: set[Id] = set()
        self.session = new_id("mcp")
        """What its calls are recorded under as one conversation, where the connection is one."""
        self._asked: dict[Id, asyncio.Future[Message]] = {}
        self._numbers = itertools.count(1)
        self._deaf = False

    # --- what comes in ------------------------------------------------------------------------------------

    def receive(self, message: Any, send: Send | None = None) -> asyncio.Task[None] | None:
        """Take one decoded message. A request becomes a task, which sends its answer by `send`. Never raises."""
        back = send or self.send
        try:
            taken = classify(message)
            if isinstance(taken, RpcRequest):
                return self._start(taken, back)
            if isinstance(taken, RpcReply):
                self._heard(taken)
            else:
                self._told(taken)
        except RpcError as error:
            back(error.as_message(id_of(message)))
        return None

    def _start(self, request: RpcRequest, send: Send) -> asyncio.Task[None]:
        if request.id in self.running:
            raise RpcError(INVALID_REQUEST, f"Invalid request: the id {request.id!r} is in use")
        if len(self.running) >= MOST_AT_ONCE:
            raise RpcError(
                REFUSED, f"{MOST_AT_ONCE} requests are under way, the most there may be; wait for some"
            )
        exchange = self._open(request, send)
        task = asyncio.get_running_loop().create_task(self._serve(exchange))
        self.running[request.id] = task
        task.add_done_callback(lambda _: self._ended(request.id, task))
        return task

    def _ended(self, ident: Id, task: asyncio.Task[None] | None) -> None:
        if self.running.get(ident) is task:  # else its id is in use again
            del self.running[ident]

    def _told(self, notification: RpcNotification) -> None:
        """Only cancellation means anything to us; others, known or not, need no answer."""
        if notification.method == "notifications/cancelled":
            ident = notification.params.get("requestId")
            task = self.running.get(ident) if isinstance(ident, str | int) else None
            if task is not None:
                task.cancel()

    def _heard(self, reply: RpcReply) -> None:
        waiting = self._asked.pop(reply.id, None)
        if waiting is None or waiting.done():
            return  # nobody asked, or nobody waits any more
        if isinstance(reply.result, dict):
            waiting.set_result(reply.result)
        else:
            waiting.set_exception(Gone("the client could not ask its user"))

    # --- eras ---------------------------------------------------------------------------------------------

    def _open(self, request: RpcRequest, send: Send) -> Exchange:
        meta = request.params.get("_meta")
        enveloped = isinstance(meta, dict) and VERSION_KEY in meta
        if request.method == "initialize" and not (
            self.modern and enveloped
        ):  # which does not know that method
            self._shake_hands(request.params)
        elif self.modern or (enveloped and self.modern is None):
            return self._open_modern(request, send)
        elif enveloped:
            raise RpcError(
                INVALID_REQUEST,
                "Invalid request: this connection began with `initialize`; its requests have no envelope",
            )
        elif self.modern is None and request.method != "ping":
            if request.method in self.server.methods:
                raise RpcError(INVALID_REQUEST, "Invalid request: send `initialize` first")
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {request.method[:80]}")
        return Exchange(
            self, request.id, request.method, request.params, send, False, self.capabilities, self.client
        )

    def _shake_hands(self, params: Message) -> None:
        if self.modern:
            raise unsupported(
                params.get("protocolVersion"), "this connection speaks 2026-07-28, without a handshake"
            )
        if self.modern is False:
            raise RpcError(INVALID_REQUEST, "Invalid request: this connection is initialised already")
        asked, can = params.get("protocolVersion"), params.get("capabilities", {})
        if not isinstance(asked, str) or not isinstance(can, dict):
            raise RpcError(
                INVALID_PARAMS, "Invalid params: initialize needs protocolVersion and capabilities"
            )
        self.modern, self.version = False, agreed(asked)
        self.capabilities, self.client = _capable(can), _client_name(params.get("clientInfo"))

    def _open_modern(self, request: RpcRequest, send: Send) -> Exchange:
        meta = envelope(request.params)
        self.modern = True
        return Exchange(
            self, request.id, request.method, request.params, send, True, _capable(meta[CAPABILITIES_KEY]),
            _client_name(meta.get(CLIENT_KEY)),
        )  # fmt: skip

    # --- what goes out ------------------------------------------------------------------------------------

    async def _serve(self, exchange: Exchange) -> None:
        ident = exchange.id
        try:
            result = await self.server.answer(exchange)
            answer: Message = {"jsonrpc": "2.0", "id": ident, "result": result}
        except RpcError as error:
            answer = error.as_message(ident)
        except asyncio.CancelledError:
            return  # the client asked for it and wants no answer, or it has gone
        except Exception:
            log.exception("the MCP face failed in %s", exchange.method)
            answer = RpcError(INTERNAL_ERROR, "Internal error; the trace is in toolgate's log").as_message(
                ident
            )
        self._ended(ident, asyncio.current_task())  # whoever has the answer may use its id again
        exchange.send(answer)

    async def ask(self, method: str, params: Message, send: Send) -> Message:
        if self._deaf or self.modern:
            raise Gone("the client cannot be asked")
        ident = f"toolgate-{next(self._numbers)}"
        waiting: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._asked[ident] = waiting
        send({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})
        try:
            return await waiting
        except asyncio.CancelledError:
            told = {"requestId": ident, "reason": "it is no longer needed"}
            send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": told})
            raise
        finally:
            self._asked.pop(ident, None)

    def hang_up(self) -> None:
        """The client sends nothing more: whoever waits for its user waits in vain. What runs may end."""
        self._deaf = True
        for waiting in self._asked.values():
            if not waiting.done():
                waiting.set_exception(Gone("the client has gone"))
        for ident in list(self.listening):
            if ident in self.running:
                self.running[ident].cancel()

    async def close(self, patience: float = 0.0) -> None:
        """Let what runs end within `patience` seconds, then cancel it; the gate records how it stands."""
        self.hang_up()
        tasks = set(self.running.values())
        if tasks and patience:
            _, tasks = await asyncio.wait(tasks, timeout=patience)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        leaving = [leave() for leave in self.subscriptions.values()]
        self.subscriptions.clear()
        await asyncio.gather(*leaving, return_exceptions=True)


def envelope(params: Message) -> Message:
    """The `_meta` of a 2026-07-28 request, checked."""
    meta = params.get("_meta")
    missing = [
        key for key in (VERSION_KEY, CAPABILITIES_KEY) if not isinstance(meta, dict) or key not in meta
    ]
    if missing or not isinstance(meta, dict):
        raise RpcError(INVALID_PARAMS, f"Invalid params: _meta lacks {' and '.join(missing)}")
    version, can = meta[VERSION_KEY], meta[CAPABILITIES_KEY]
    if not isinstance(version, str) or not isinstance(can, dict):
        raise RpcError(
            INVALID_PARAMS,
            "Invalid params: _meta has a version that is no text or capabilities that are no object",
        )
    if version not in MODERN:
        raise unsupported(version)
    return meta


def unsupported(asked: Any, why: str = "") -> RpcError:
    data: Message = {"supported": list(MODERN)}
    if isinstance(asked, str):
        data["requested"] = asked
    return RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version" + (f": {why}" if why else ""), data)


def _capable(said: Message) -> frozenset[str]:
    """What a client can do for us. Only that is kept: a session lasts, and a client may say a lot."""
    found = {name for name in ("elicitation", "sampling") if isinstance(said.get(name), dict)}
    forms = said.get("elicitation")
    if forms and "form" not in forms:  # an empty capability means forms; one that names only others does not
        found.discard("elicitation")
    extras = said.get("experimental")
    if isinstance(extras, dict) and isinstance(extras.get(STRUCTURED_KEY), dict):
        found.add(STRUCTURED_KEY)
    return frozenset(found)


def _client_name(info: Any) -> str:
    name = info.get("name") if isinstance(info, dict) else None
    return name[:80] if isinstance(name, str) else ""
