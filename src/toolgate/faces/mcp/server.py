"""What the server answers, method by method, for any connection and either era."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from toolgate.facade import Gate
from toolgate.faces.mcp import calling, resources, subscriptions
from toolgate.faces.mcp.calling import structured
from toolgate.faces.mcp.consent import Consent
from toolgate.faces.mcp.greeting import INFO, INSTRUCTIONS, capabilities, initialized
from toolgate.faces.mcp.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, Message, RpcError
from toolgate.faces.mcp.listing import ListChanges, Profile, ToolListing
from toolgate.faces.mcp.protocol import MODERN, SERVER_KEY, Exchange
from toolgate.faces.mcp.request_state import SuspendedCalls

FRESH_MS = 5_000
"""How long a client of the stateless era may keep a list; it hears of changes if it listens."""
Method = Callable[[Exchange], Awaitable[Message]]


@dataclass(frozen=True)
class Options:
    profile: Profile | None = None
    """None: what the configuration says, as it is now."""
    console: str = ""
    """Where a human can answer in a browser, if that is known."""
    servers: bool = False
    """A client has been told that there are servers, whether or not there are."""


class McpServer:
    """One for each gate, however many clients it has."""

    def __init__(self, gate: Gate, options: Options | None = None) -> None:
        self.gate = gate
        self.options = options or Options()
        self.listing = ToolListing(gate, self.options.profile)
        self.consent = Consent(gate, self.options.console)
        self.list_changes = ListChanges(self.listing)
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
        self.suspended = SuspendedCalls()
        self.subscriptions = subscriptions.ResourceSubscriptions(gate)
        self._old: dict[str, Method] = both | {"initialize": self._initialize, "ping": self._ping}
        self._servers = gate.upstream is not None or self.options.servers
        if self._servers:
            self._old |= {
                "logging/setLevel": self._set_level,
                "resources/subscribe": self.subscriptions.subscribe,
                "resources/unsubscribe": self.subscriptions.unsubscribe,
            }
        self._new: dict[str, Method] = both | {
            "server/discover": self._discover, "subscriptions/listen": lambda exchange: subscriptions.listen(self, exchange),
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
        self.list_changes.close()

    # --- who we are ---------------------------------------------------------------------------------------

    async def _initialize(self, exchange: Exchange) -> Message:
        return initialized(exchange.connection.version, self._servers)

    async def _discover(self, exchange: Exchange) -> Message:
        return {
            "supportedVersions": list(MODERN),
            "capabilities": capabilities(self._servers),
            "serverInfo": INFO,
            "instructions": INSTRUCTIONS,
        } | _cached(exchange)

    async def _set_level(self, exchange: Exchange) -> Message:
        """What servers log during this client's calls is all there is to hear."""
        from toolgate.core.caller import LOG_LEVELS

        level = exchange.params.get("level")
        if level not in LOG_LEVELS:
            raise RpcError(INVALID_PARAMS, f"Invalid params: the level is one of {', '.join(LOG_LEVELS)}")
        exchange.connection.log_level = level
        return {}

    async def _ping(self, exchange: Exchange) -> Message:
        return {}

    # --- lists --------------------------------------------------------------------------------------------

    async def _tools(self, exchange: Exchange) -> Message:
        whole = structured(self.gate, exchange)
        tools, following = self.listing.page(exchange.persona, _cursor(exchange), whole)
        return {"tools": tools} | ({"nextCursor": following} if following else {}) | _cached(exchange)

    async def _resources(self, exchange: Exchange) -> Message:
        _no_cursor(exchange)
        found = await resources.listed(self.gate, exchange.persona)
        return {"resources": found} | _cached(exchange)

    async def _templates(self, exchange: Exchange) -> Message:
        _no_cursor(exchange)
        found = resources.templates(self.gate, exchange.persona)
        return {"resourceTemplates": found} | _cached(exchange)

    async def _prompts(self, exchange: Exchange) -> Message:
        _no_cursor(exchange)
        found = resources.listed_prompts() + await resources.server_prompts(self.gate, exchange.persona)
        return {"prompts": found} | _cached(exchange)

    async def _prompt(self, exchange: Exchange) -> Message:
        name = exchange.params.get("name")
        if isinstance(name, str) and name not in resources.PROMPTS:
            found = await resources.server_prompt(
                self.gate, exchange.persona, name, exchange.params.get("arguments") or {}
            )
            if found is not None:
                return found
        return resources.get_prompt(exchange.params)

    async def _complete(self, exchange: Exchange) -> Message:
        able = [
            tool.name
            for tool, said in self.gate.outlook(exchange.persona)
            if tool.listed and said.verdict != "deny"
        ]
        return resources.completions(exchange.params, able)


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
