"""Subscriptions of clients: to resources of servers behind the gate, and to the list of tools.

To subscribe to a resource is to read it: it is read once, by a recorded call of the persona, and policy decides as it does
about any reading. What may not be read is not there. toolgate's own resources do not say when they change.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from toolgate.core.decision import Verdict
from toolgate.core.errors import CallError, Code
from toolgate.facade import Gate
from toolgate.faces.mcp import resources
from toolgate.faces.mcp.jsonrpc import INVALID_PARAMS, REFUSED, Message, RpcError
from toolgate.faces.mcp.protocol import Exchange

if TYPE_CHECKING:
    from toolgate.faces.mcp.server import McpServer

SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
MOST_OF_SESSION = 100
"""For one session or stream."""
MOST_OF_PERSONA = 300
"""For one persona, so that it leaves room for others."""
LONGEST_URI = 2000
"""Characters of an address: it is kept, and sent with each change."""
_SAID = frozenset({Code.PENDING, Code.RATE_LIMITED, Code.UNAVAILABLE, Code.TIMEOUT})
"""Refusals that say nothing about the resource."""
Leave = Callable[[], Awaitable[None]]


class ResourceSubscriptions:
    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._held: Counter[str] = Counter()

    async def subscribe(self, exchange: Exchange) -> Message:
        uri, connection = _uri(exchange), exchange.connection
        held = connection.subscriptions
        if uri in held:
            return {}
        if len(held) >= MOST_OF_SESSION:
            raise RpcError(REFUSED, f"a session may have {MOST_OF_SESSION} subscriptions; end some")

        def tell() -> None:
            connection.send(updated(uri))

        held[uri] = _waiting  # keeps its place while the server is asked
        try:
            leave = await self.join(exchange, uri, tell)
        except BaseException:
            held.pop(uri, None)
            raise
        if held.get(uri) is _waiting:
            held[uri] = leave
        else:  # it was ended before it began
            await leave()
        return {}

    async def unsubscribe(self, exchange: Exchange) -> Message:
        leave = exchange.connection.subscriptions.pop(_uri(exchange), None)
        if leave is not None:
            await leave()
        return {}

    async def join(self, exchange: Exchange, uri: str, tell: Callable[[], None]) -> Leave:
        """What comes back ends it."""
        gate, persona = self._gate, exchange.persona
        found = resources.server_call(uri)
        if found is None and resources.known(uri):
            raise RpcError(REFUSED, "toolgate's own resources do not say when they change; read them again")
        if found is None or gate.upstream is None or len(uri) > LONGEST_URI:
            raise _missing(exchange, uri)
        if self._held[persona] >= MOST_OF_PERSONA:
            raise RpcError(REFUSED, f"a persona may have {MOST_OF_PERSONA} subscriptions; end some")
        self._held[persona] += 1
        try:
            return await self._joined(exchange, uri, found, tell)
        except BaseException:
            self._held[persona] -= 1
            raise

    async def _joined(
        self, exchange: Exchange, uri: str, reading: tuple[str, Message], tell: Callable[[], None]
    ) -> Leave:
        gate, persona = self._gate, exchange.persona
        tool, args = reading
        assert gate.upstream is not None
        result = await gate.call(tool, args, persona=persona, wait=False)
        if result.error is not None:
            if result.error.code in _SAID:
                raise RpcError(REFUSED, f"{result.error.code.value}: {result.error.message}")
            raise _missing(exchange, uri)
        server = tool.partition(".")[0]

        told = _Subscriber(gate, persona, reading, tell)
        try:
            leave = await gate.upstream.subscribe(server, args["uri"], told)
        except CallError as error:
            raise RpcError(REFUSED, f"{error.code.value}: {error.message}") from None
        except Exception:  # whatever the SDK raises for what a server says
            raise RpcError(REFUSED, f"{server} does not say when this resource changes") from None

        def end() -> Awaitable[None]:
            """Called once; it ends even if whoever ends it is cancelled."""
            self._held[persona] -= 1
            told.end()
            return leave()

        return end


def updated(uri: str) -> Message:
    return {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}}


class _Subscriber:
    """Tells one subscriber of changes, as long as it may read what has changed."""

    def __init__(
        self, gate: Gate, persona: str, reading: tuple[str, Message], tell: Callable[[], None]
    ) -> None:
        self._gate, self._persona, self._reading, self._tell = gate, persona, reading, tell
        self._task: asyncio.Task[None] | None = None

    def __call__(self) -> None:
        if self._task is None or self._task.done():  # else it is about to be told
            self._task = asyncio.create_task(self._told())

    def end(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _told(self) -> None:
        if await self._still():
            self._tell()

    async def _still(self) -> bool:
        """Policy may have changed since, or somebody been paused."""
        gate, (name, args) = self._gate, self._reading
        tool = gate.tool(name)
        try:
            paused = await gate.paused()
            return (
                tool is not None and gate.judge(tool, args, self._persona, paused).verdict is not Verdict.DENY
            )
        except CallError:  # the policy cannot be read just now
            return False


def _uri(exchange: Exchange) -> str:
    uri = exchange.params.get("uri")
    if not isinstance(uri, str):
        raise RpcError(INVALID_PARAMS, f"Invalid params: {exchange.method} needs a uri")
    return uri


def _missing(exchange: Exchange, uri: str) -> RpcError:
    return resources.missing(exchange, uri, f"there is no resource {uri[:200]!r}")


def _waiting() -> Awaitable[None]:
    """There is nothing to end yet."""
    return asyncio.sleep(0)


async def listen(server: McpServer, exchange: Exchange) -> Message:
    """Acknowledged first, then what was asked for, until the client goes. What cannot be had is not acknowledged."""
    wanted = exchange.params.get("notifications")
    if not isinstance(wanted, dict):
        raise RpcError(INVALID_PARAMS, "Invalid params: notifications is not an object")
    stream = _ChangeStream(server, exchange)
    exchange.connection.listening.add(exchange.id)
    try:
        honoured: Message = {"toolsListChanged": True} if wanted.get("toolsListChanged") is True else {}
        if uris := await stream.subscribed(wanted.get("resourceSubscriptions")):
            honoured["resourceSubscriptions"] = uris
        stream.open(honoured)
        await asyncio.get_running_loop().create_future()
    finally:
        exchange.connection.listening.discard(exchange.id)
        await stream.close()
    raise AssertionError("a stream ends by being cancelled")


class _ChangeStream:
    def __init__(self, server: McpServer, exchange: Exchange) -> None:
        self._server, self._exchange = server, exchange
        self._meta = {SUBSCRIPTION_KEY: exchange.id}
        self._leaves: list[Leave] = []
        self._unwatch: Callable[[], None] | None = None
        self._early: set[str] | None = set()
        """What changed before the stream was acknowledged; None from then on."""

    async def subscribed(self, wanted: Any) -> list[str]:
        found: list[str] = []
        if not isinstance(wanted, list) or self._server.gate.upstream is None:
            return found
        for uri in dict.fromkeys(uri for uri in wanted[:MOST_OF_SESSION] if isinstance(uri, str)):
            try:
                leave = await self._server.subscriptions.join(self._exchange, uri, self._teller(uri))
            except RpcError:
                continue
            self._leaves.append(leave)
            found.append(uri)
        return found

    def _teller(self, uri: str) -> Callable[[], None]:
        def tell() -> None:
            if self._early is not None:
                self._early.add(uri)
            else:
                self._exchange.notify("notifications/resources/updated", {"uri": uri, "_meta": self._meta})

        return tell

    def open(self, honoured: Message) -> None:
        told = {"notifications": honoured, "_meta": self._meta}
        self._exchange.notify("notifications/subscriptions/acknowledged", told)
        early, self._early = self._early or set(), None
        for uri in early:
            self._teller(uri)()
        if "toolsListChanged" in honoured:
            self._unwatch = self._server.list_changes.join(self._exchange.persona, self._changed)

    def _changed(self) -> None:
        self._exchange.notify("notifications/tools/list_changed", {"_meta": self._meta})

    async def close(self) -> None:
        if self._unwatch is not None:
            self._unwatch()
        leaving = [leave() for leave in self._leaves]  # at once: whoever waits for it may be cancelled again
        await asyncio.gather(*leaving, return_exceptions=True)
