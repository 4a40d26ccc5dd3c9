"""`subscriptions/listen`: the stateless era's stream of changes, of the list of tools and of resources."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from toolgate.faces.mcp.jsonrpc import INVALID_PARAMS, Message, RpcError
from toolgate.faces.mcp.protocol import Exchange
from toolgate.faces.mcp.subscribing import MOST, Leave

if TYPE_CHECKING:
    from toolgate.faces.mcp.server import Server

SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"


async def listen(server: Server, exchange: Exchange) -> Message:
    """Acknowledged first, then what was asked for, until the client goes. What cannot be had is not acknowledged."""
    wanted = exchange.params.get("notifications")
    if not isinstance(wanted, dict):
        raise RpcError(INVALID_PARAMS, "Invalid params: notifications is not an object")
    stream = _Stream(server, exchange)
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


class _Stream:
    def __init__(self, server: Server, exchange: Exchange) -> None:
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
        for uri in dict.fromkeys(uri for uri in wanted[:MOST] if isinstance(uri, str)):
            try:
                leave = await self._server.subscribing.join(self._exchange, uri, self._teller(uri))
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
            self._unwatch = self._server.watching.join(self._exchange.persona, self._changed)

    def _changed(self) -> None:
        self._exchange.notify("notifications/tools/list_changed", {"_meta": self._meta})

    async def close(self) -> None:
        if self._unwatch is not None:
            self._unwatch()
        leaving = [leave() for leave in self._leaves]  # at once: whoever waits for it may be cancelled again
        await asyncio.gather(*leaving, return_exceptions=True)
