"""What the server answers, method by method, for any connection and either era."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from toolgate.facade import Gate
from toolgate.faces.mcp import calling, completing, prompts, resources
from toolgate.faces.mcp import subscriptions_listen as hearing
from toolgate.faces.mcp import upstream_resources as behind
from toolgate.faces.mcp.consent import Consent
from toolgate.faces.mcp.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, Message, RpcError
from toolgate.faces.mcp.list_changed import Watching
from toolgate.faces.mcp.listing import Listing, Profile
from toolgate.faces.mcp.protocol import HANDSHAKE, MODERN, SERVER_KEY, Exchange
from toolgate.faces.mcp.subscribing import Subscribing
from toolgate.faces.mcp.suspended_calls import Parking
from toolgate.version import VERSION

INFO = {"name": "toolgate", "title": "toolgate", "version": VERSION}
FRESH_MS = 5_000
"""How long a client of the stateless era may keep a list; it hears of changes if it listens."""
INSTRUCTIONS = """\
Every call passes a gate: policy decides, a human may be asked, and what happened is recorded. \
A result has `ok`, `data`, `error` {code, message, fix} and `meta`. On an error read `fix`. \
`pending`: a human has been asked; make the same call again once it is approved. \
`denied`: a human refused; do not repeat it, go on without it. \
`not_allowed`: policy refuses it for this persona; `tools.help` says why. \
`tools.list` shows what there is and what needs approval."""
Method = Callable[[Exchange], Awaitable[Message]]


@dataclass(frozen=True)
class Options:
    profile: Profile | None = None
    """None: what the configuration says, as it is now."""
    console: str = ""
    """Where a human can answer in a browser, if that is known."""


class Server:
    """One for each gate, however many clients it has."""

    def __init__(self, gate: Gate, options: Options | None = None) -> None:
        self.gate = gate
        self.options = options or Options()
        self.listing = Listing(gate, self.options.profile)
        self.consent = Consent(gate, self.options.console)
        self.watching = Watching(self.listing)
        both: dict[str, Method] = {
            "tools/list": self._tools,
            "tools/call": lambda exchange: calling.call(self, exchange),
            "resources/list": self._resources,
            "resources/templates/list": self._templates,
            "resources/read": lambda exchange: resources.read(self.gate, exchange),
            "prompts/list": self._prompts,
            "prompts/get": self._prompt,
            "completion/complete": self._complete,
        }
        self.parking = Parking()
        self.subscribing = Subscribing(gate)
        self._old: dict[str, Method] = both | {"initialize": self._initialize, "ping": self._ping}
        if gate.upstream is not None:
            self._old |= {
                "logging/setLevel": self._set_level,
                "resources/subscribe": self.subscribing.subscribe,
                "resources/unsubscribe": self.subscribing.unsubscribe,
            }
        self._new: dict[str, Method] = both | {
            "server/discover": self._discover, "subscriptions/listen": lambda exchange: hearing.listen(self, exchange),
        }  # fmt: skip
        self.methods = frozenset(both)

    async def answer(self, exchange: Exchange) -> Message:
        table = self._new if exchange.modern else self._old
        method = table.get(exchange.method)
        if method is None:
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {exchange.method[:80]}")
        result = await method(exchange)
        if exchange.modern:
            result.setdefault("resultType", "complete")
            result["_meta"] = {**result.get("_meta", {}), SERVER_KEY: INFO}
        return result

    def close(self) -> None:
        self.watching.close()

    # --- who we are ---------------------------------------------------------------------------------------

    async def _initialize(self, exchange: Exchange) -> Message:
        return {
            "protocolVersion": exchange.connection.version,
            "capabilities": self._capabilities,
            "serverInfo": INFO if exchange.connection.version >= HANDSHAKE[2] else _without(INFO, "title"),
            "instructions": INSTRUCTIONS,
        }

    async def _discover(self, exchange: Exchange) -> Message:
        return {
            "supportedVersions": list(MODERN),
            "capabilities": self._capabilities,
            "serverInfo": INFO,
            "instructions": INSTRUCTIONS,
        } | _cached(exchange)

    @property
    def _capabilities(self) -> Message:
        return CAPABILITIES if self.gate.upstream is None else CAPABILITIES | OF_SERVERS

    async def _set_level(self, exchange: Exchange) -> Message:
        """What servers log during this client's calls is all there is to hear."""
        from toolgate.features.servers.logs import LEVELS

        level = exchange.params.get("level")
        if level not in LEVELS:
            raise RpcError(INVALID_PARAMS, f"Invalid params: the level is one of {', '.join(LEVELS)}")
        exchange.connection.log_level = level
        return {}

    async def _ping(self, exchange: Exchange) -> Message:
        return {}

    # --- lists --------------------------------------------------------------------------------------------

    async def _tools(self, exchange: Exchange) -> Message:
        tools, following = self.listing.page(exchange.persona, _cursor(exchange))
        return {"tools": tools} | ({"nextCursor": following} if following else {}) | _cached(exchange)

    async def _resources(self, exchange: Exchange) -> Message:
        _no_cursor(exchange)
        own = resources.listed(self.gate, exchange.persona)
        found = own + await behind.resources(self.gate, exchange.persona)
        return {"resources": found} | _cached(exchange)

    async def _templates(self, exchange: Exchange) -> Message:
        _no_cursor(exchange)
        own = resources.templates(self.gate, exchange.persona)
        found = own + behind.templates(self.gate, exchange.persona)
        return {"resourceTemplates": found} | _cached(exchange)

    async def _prompts(self, exchange: Exchange) -> Message:
        _no_cursor(exchange)
        found = prompts.listed() + await behind.prompts(self.gate, exchange.persona)
        return {"prompts": found} | _cached(exchange)

    async def _prompt(self, exchange: Exchange) -> Message:
        name = exchange.params.get("name")
        if isinstance(name, str) and name not in prompts.PROMPTS:
            found = await behind.prompt(
                self.gate, exchange.persona, name, exchange.params.get("arguments") or {}
            )
            if found is not None:
                return found
        return prompts.get(exchange.params)

    async def _complete(self, exchange: Exchange) -> Message:
        return completing.complete(exchange.params, self.listing.names(exchange.persona))


CAPABILITIES: dict[str, Any] = {
    "tools": {"listChanged": True},
    "resources": {},
    "prompts": {},
    "completions": {},
}
OF_SERVERS: dict[str, Any] = {"resources": {"subscribe": True}, "logging": {}}
"""What there is only with servers behind the gate."""


def _cached(exchange: Exchange) -> Message:
    return {"ttlMs": FRESH_MS, "cacheScope": "private"} if exchange.modern else {}


def _cursor(exchange: Exchange) -> str | None:
    cursor = exchange.params.get("cursor")
    if cursor is not None and not isinstance(cursor, str):
        raise RpcError(INVALID_PARAMS, "Invalid params: a cursor is a text")
    return cursor


def _no_cursor(exchange: Exchange) -> None:
    if _cursor(exchange) is not None:
        raise RpcError(INVALID_PARAMS, "Invalid params: this list has one page, and no cursor leads on")


def _without(value: Message, name: str) -> Message:
    return {key: item for key, item in value.items() if key != name}
