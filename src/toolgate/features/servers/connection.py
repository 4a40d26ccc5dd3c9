"""One live session with a server. The SDK wants to be entered and left by one task, so each has a keeper task."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager, suppress
from contextvars import Context
from typing import Any

import mcp_types as types
from mcp.client import Client
from mcp.client.session import ClientRequestContext
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from toolgate.core.caller import LOG_LEVELS
from toolgate.core.errors import CallError, Failed, Unavailable
from toolgate.features.servers.active_calls import ActiveCall, ActiveCalls
from toolgate.features.servers.client_callbacks import OWN_LEVEL, ClientCallbacks, ConnectionHooks
from toolgate.features.servers.definitions import KEYS, MAX_TOOLS
from toolgate.features.servers.subscriptions import ChangeStream, listened, resource_changes, tools_changes
from toolgate.version import VERSION

log = logging.getLogger("toolgate.upstream")
for noisy in (
    "mcp",
    "client",
):  # the SDK's words may quote a server; without a handler they would go to stderr
    logging.getLogger(noisy).addHandler(logging.NullHandler())
MAX_PAGES = 100
MAX_ROUNDS = 10
CLOSE_SECONDS = 15.0
LEVEL_SECONDS = 5.0
LISTEN_SECONDS = 10.0
Progress = Callable[[float, float | None, str | None], Coroutine[Any, Any, None]]
_NOT_OURS = "see `elicitation` and `sampling` in docs/servers.md; roots are not offered"
_ANSWER: TypeAdapter[Any] = TypeAdapter(types.CallToolResult | types.InputRequiredResult)


class ServerConnection:
    def __init__(
        self, name: str, transport: Any, legacy: bool, hooks: ConnectionHooks, hint: str = ""
    ) -> None:
        self.name = name
        self._hint = hint
        self._hooks = hooks
        self.lost = ""
        """Why it is over; empty while it lives."""
        self.since = time.time()
        self._calls = ActiveCalls()
        self._callbacks = ClientCallbacks(name, hooks, self._calls)
        self._client = Client(
            transport,
            mode="legacy" if legacy else "auto",
            client_info=types.Implementation(name="toolgate", version=VERSION),
            elicitation_callback=self._callbacks.elicit if hooks.may_ask else None,
            sampling_callback=self._callbacks.sample if hooks.samplings is not None else None,
            logging_callback=self._callbacks.logged,
            message_handler=self._hear,
            cache=None,
        )
        self._stop = asyncio.Event()
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._streams: set[asyncio.Task[None]] = set()
        self._level = ""
        """What the server was told to log."""
        # a context of its own: what the first caller is must not be taken for what every message belongs to
        self._keeper = asyncio.create_task(self._keep(), name=f"mcp server {name}", context=Context())

    async def opened(self, seconds: float) -> None:
        """Wait until it can be used; if it cannot, it is closed when this raises."""
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(self._opened)
        except TimeoutError:
            await self.close()
            raise Unavailable(
                f"it did not answer in {seconds:g} s", "raise `start_timeout_s` if it is slow to start"
            ) from None
        except BaseException:
            await self.close()
            raise

    async def _keep(self) -> None:
        try:
            async with self._client:
                if not self._opened.done():
                    self._opened.set_result(None)
                await self._stop.wait()
        except BaseException as error:  # of the SDK's task groups, whatever they raise
            self.over(_reason(error))
            if not self._opened.done():
                fix = getattr(error, "fix", "") or self._hint
                self._opened.set_exception(Unavailable(self.lost, fix))
                self._opened.exception()  # heard, even if nobody waits any more
        else:
            self.over("it was closed")

    def over(self, why: str) -> None:
        self.lost = self.lost or why

    @property
    def alive(self) -> bool:
        return not self.lost and self._opened.done() and not self._keeper.done()

    async def close(self) -> None:
        """End it. The transport ends its process in bounded time; the last resort is to cancel it there."""
        self.over("it was closed")
        for stream in self._streams:
            stream.cancel()
        self._stop.set()
        if not self._opened.done():
            self._keeper.cancel()
        _, late = await asyncio.wait((self._keeper,), timeout=CLOSE_SECONDS)
        for task in late:
            task.cancel()
            await asyncio.wait((task,), timeout=CLOSE_SECONDS)

    @property
    def facts(self) -> dict[str, Any]:
        """What the server says of itself; for people, never for decisions."""
        info = self._client.server_info
        said = self._client.server_capabilities
        return {
            "protocol": self._client.protocol_version,
            "server": f"{info.name} {info.version}"[:120] if info else "",
            "resources": said.resources is not None,
            "prompts": said.prompts is not None,
            "subscribe": said.resources is not None and bool(said.resources.subscribe),
        }

    @property
    def modern(self) -> bool:
        return self._client.protocol_version >= "2026"

    async def ping(self, seconds: float) -> float:
        """How long an answer takes, in milliseconds. The newest protocol has no ping; it lists a page instead."""
        begun = time.perf_counter()
        async with asyncio.timeout(seconds):
            if self.modern:
                await self._client.session.list_tools()
            else:
                await self._client.session.send_ping()
        return (time.perf_counter() - begun) * 1000

    async def tools(self) -> list[dict[str, Any]]:
        """Everything it lists, as it says it."""
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self._client.session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
            found += [_plain(tool) for tool in page.tools]
            if len(found) > MAX_TOOLS:
                raise Unavailable(f"it lists more than {MAX_TOOLS} tools", "use a server that offers less")
            cursor = page.next_cursor
            if cursor is None:
                return found
        raise Unavailable(f"its list has more than {MAX_PAGES} pages", "use a server that offers less")

    async def call(
        self, tool: str, args: Mapping[str, Any], progress: Progress, call: ActiveCall
    ) -> dict[str, Any]:
        """Send it once, answer what the server wants to know on the way, and give back its result as it is."""
        session = self._client.session
        responses: Any = None
        state: str | None = None
        level = await self._told_level(call.caller.level())
        meta: Any = {types.LOG_LEVEL_META_KEY: level} if self.modern else None
        with self._calls.one(call):
            for _ in range(MAX_ROUNDS):
                params = types.CallToolRequestParams(
                    name=tool,
                    arguments=dict(args),
                    input_responses=responses,
                    request_state=state,
                    _meta=meta,
                )
                # not `call_tool`, which would raise away a result that breaks its own schema
                answer = await session.send_request(
                    types.CallToolRequest(params=params), _ANSWER, progress_callback=_told(progress)
                )
                if isinstance(answer, types.CallToolResult):
                    made: dict[str, Any] = answer.model_dump(by_alias=True, mode="json", exclude_unset=True)
                    return made
                responses, state = await self._inputs(answer, call), answer.request_state
        raise MCPError(types.INVALID_REQUEST, f"it asked for input more than {MAX_ROUNDS} times")

    async def _inputs(self, answer: types.InputRequiredResult, call: ActiveCall) -> dict[str, Any] | None:
        """The newest protocol has servers ask by an unfinished result."""
        responses: dict[str, Any] = {}
        for key, request in list((answer.input_requests or {}).items())[:MAX_ROUNDS]:
            reply = await self._input(key, request, call)
            if isinstance(reply, types.ErrorData):
                # there is no way to tell the server, which waits for answers
                raise Failed(f"{self.name} wanted something that it cannot have: {reply.message}", _NOT_OURS)
            responses[key] = reply
        return responses or None

    async def _input(self, key: str, request: types.InputRequest, call: ActiveCall) -> Any:
        if isinstance(request, types.ElicitRequest) and self._hooks.may_ask:
            return await self._callbacks.elicit_for(call, request.params)
        if isinstance(request, types.CreateMessageRequest) and self._hooks.samplings is not None:
            return await self._callbacks.sample_for(call, request.params)
        session = self._client.session  # which says what is not offered
        return await session.dispatch_input_request(
            ClientRequestContext(session=session, request_id=key), request
        )

    def aside(self, persona: str) -> AbstractContextManager[None]:
        """For whatever is asked of the server beside its tools."""
        return self._calls.aside(persona)

    async def resources(self) -> list[dict[str, Any]]:
        page = await self._client.session.list_resources()
        return [one.model_dump(by_alias=True, mode="json", exclude_none=True) for one in page.resources]

    async def resource(self, uri: str) -> dict[str, Any]:
        answer = await self._client.session.read_resource(uri)
        return answer.model_dump(by_alias=True, mode="json", exclude_none=True)

    async def prompts(self) -> list[dict[str, Any]]:
        page = await self._client.session.list_prompts()
        return [one.model_dump(by_alias=True, mode="json", exclude_none=True) for one in page.prompts]

    async def prompt(self, name: str, args: Mapping[str, str]) -> dict[str, Any]:
        answer = await self._client.session.get_prompt(name, dict(args))
        return answer.model_dump(by_alias=True, mode="json", exclude_none=True)

    async def subscribe(self, uri: str) -> Callable[[], Coroutine[Any, Any, None]]:
        """Hear of changes from now on; what comes back ends that. The newest protocol has a stream for each."""
        session = self._client.session
        if self.modern:
            stream = await self._listened(resource_changes(uri, self._hooks.updated))

            async def end() -> None:
                stream.cancel()
                await asyncio.wait((stream,))

            return end
        subscribing = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
        await session.send_request(subscribing, types.EmptyResult)

        async def leave() -> None:
            request = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri))
            await session.send_request(request, types.EmptyResult)

        return leave

    async def follow_tools(self) -> None:
        """Hear when its list of tools changes. Servers of the handshake era say so unasked; of the others those that say so
        at all are asked, and whoever does not is listed again now and then."""
        said = self._client.server_capabilities.tools
        if not self.modern or said is None or not said.list_changed:
            return
        try:
            async with asyncio.timeout(LISTEN_SECONDS):
                await self._listened(tools_changes(self._hooks.changed))
        except Exception as error:
            log.info("%s does not say when its tools change: %s", self.name, type(error).__name__)
        else:
            self._hooks.changed()  # they may have, since they were listed

    async def _listened(self, wanted: ChangeStream) -> asyncio.Task[None]:
        stream = await listened(self._client.session, wanted, lambda: self.alive)
        self._streams.add(stream)
        stream.add_done_callback(self._streams.discard)
        return stream

    async def _told_level(self, wanted: str) -> str:
        """The most that anybody wants to hear. Each caller gets what it wants of that."""
        known = [level for level in (wanted, self._level, OWN_LEVEL) if level in LOG_LEVELS]
        level = min(known, key=LOG_LEVELS.index)
        if not self.modern and self._client.server_capabilities.logging is not None and level != self._level:
            self._level = level
            request = types.SetLevelRequest(params=types.SetLevelRequestParams(level=level))
            with suppress(MCPError, TimeoutError):  # a server that will not be told logs as it likes
                async with asyncio.timeout(LEVEL_SECONDS):
                    await self._client.session.send_request(request, types.EmptyResult)
        return level

    async def _hear(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._hooks.changed()
        elif isinstance(message, types.ResourceUpdatedNotification) and not self.modern:
            self._hooks.updated(str(message.params.uri))


def _told(tell: Progress) -> ProgressFnT:
    """The SDK's type names its parameters."""

    async def told(progress: float, total: float | None, message: str | None) -> None:
        await tell(progress, total, message)

    return told


def _plain(tool: types.Tool) -> dict[str, Any]:
    annotations = tool.annotations
    said = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "annotations": annotations.model_dump(by_alias=True, mode="json", exclude_none=True)
        if annotations
        else None,
    }
    return {key: said[key] for key in KEYS if said[key] is not None}


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if isinstance(error, CallError):
        return error.message
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
