"""Subscriptions to resources of servers behind the gate.

To subscribe is to read: the resource is read once, by a recorded call of the persona, and policy decides as it does about
any reading. What may not be read is not there. toolgate's own resources do not say when they change.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

from toolgate.core.decision import Verdict
from toolgate.core.errors import CallError, Code
from toolgate.facade import Gate
from toolgate.faces.mcp import resources
from toolgate.faces.mcp import upstream_resources as behind
from toolgate.faces.mcp.jsonrpc import INVALID_PARAMS, REFUSED, Message, RpcError
from toolgate.faces.mcp.protocol import Exchange

MOST = 100
"""For one session or stream."""
MOST_EACH = 300
"""For one persona, so that it leaves room for others."""
LONGEST = 2000
"""Characters of an address: it is kept, and sent with each change."""
_SAID = frozenset({Code.PENDING, Code.RATE_LIMITED, Code.UNAVAILABLE, Code.TIMEOUT})
"""Refusals that say nothing about the resource."""
Leave = Callable[[], Awaitable[None]]


class Subscribing:
    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._held: Counter[str] = Counter()

    async def subscribe(self, exchange: Exchange) -> Message:
        uri, connection = _uri(exchange), exchange.connection
        held = connection.subscriptions
        if uri in held:
            return {}
        if len(held) >= MOST:
            raise RpcError(REFUSED, f"a session may have {MOST} subscriptions; end some")

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
        found = behind.call_for(uri)
        if found is None and resources.known(uri):
            raise RpcError(REFUSED, "toolgate's own resources do not say when they change; read them again")
        if found is None or gate.upstream is None or len(uri) > LONGEST:
            raise _missing(exchange, uri)
        if self._held[persona] >= MOST_EACH:
            raise RpcError(REFUSED, f"a persona may have {MOST_EACH} subscriptions; end some")
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

        told = _Telling(gate, persona, reading, tell)
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


def updated(uri: str, **more: Message) -> Message:
    return {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri, **more}}


class _Telling:
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
