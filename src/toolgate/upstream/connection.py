"""One live session with a server. The SDK wants to be entered and left by one task, so each has a keeper task."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.client import Client
from mcp.client.session import ClientRequestContext
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from toolgate.core.errors import CallError, Failed, Unavailable
from toolgate.upstream import asking, logs
from toolgate.upstream.definitions import KEYS, MAX_TOOLS
from toolgate.upstream.results import Scrub
from toolgate.upstream.sampling import Refused, Samplings
from toolgate.upstream.subscribing import listened
from toolgate.upstream.underway import Calls, Ended, UnderWay
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
ASK_SECONDS = 600.0
OWN_LEVEL = "info"
"""What toolgate's own log hears of servers, whatever a caller wants."""
OWN_LINES = logs.BURST, 100 / 60
LEVEL_SECONDS = 5.0
Progress = Callable[[float, float | None, str | None], Coroutine[Any, Any, None]]
_NOT_OURS = "see `sampling` in docs/servers.md; roots are not offered"
_ANSWER: TypeAdapter[Any] = TypeAdapter(types.CallToolResult | types.InputRequiredResult)


@dataclass(frozen=True)
class Behind:
    """What a connection hands on: to whom the server's messages go."""

    scrub: Scrub
    changed: Callable[[], None]
    updated: Callable[[str], None]
    """A resource that was subscribed to has changed."""
    samplings: Samplings | None
    """None: no model is offered to the server."""


class Connection:
    def __init__(self, name: str, transport: Any, legacy: bool, behind: Behind, hint: str = "") -> None:
        self.name = name
        self._hint = hint
        self._behind = behind
        self.lost = ""
        """Why it is over; empty while it lives."""
        self.since = time.time()
        self._client = Client(
            transport,
            mode="legacy" if legacy else "auto",
            client_info=types.Implementation(name="toolgate", version=VERSION),
            elicitation_callback=self._elicit,
            sampling_callback=self._sample if behind.samplings is not None else None,
            logging_callback=self._logged,
            message_handler=self._hear,
            cache=None,
        )
        self._stop = asyncio.Event()
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._calls = Calls()
        self._streams: set[asyncio.Task[None]] = set()
        self._level = ""
        """What the server was told to log."""
        self._own = logs.Allowance(*OWN_LINES)
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
        self, tool: str, args: Mapping[str, Any], progress: Progress, under_way: UnderWay
    ) -> dict[str, Any]:
        """Send it once, answer what the server wants to know on the way, and give back its result as it is."""
        session = self._client.session
        responses: Any = None
        state: str | None = None
        level = await self._told_level(under_way.caller.level())
        meta: Any = {types.LOG_LEVEL_META_KEY: level} if self.modern else None
        with self._calls.one(under_way):
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
                responses, state = await self._inputs(answer), answer.request_state
        raise MCPError(types.INVALID_REQUEST, f"it asked for input more than {MAX_ROUNDS} times")

    async def _inputs(self, answer: types.InputRequiredResult) -> dict[str, Any] | None:
        """The newest protocol has servers ask by an unfinished result."""
        responses: dict[str, Any] = {}
        session = self._client.session
        for key, request in list((answer.input_requests or {}).items())[:MAX_ROUNDS]:
            context = ClientRequestContext(session=session, request_id=key)
            reply = await session.dispatch_input_request(context, request)
            if isinstance(
                reply, types.ErrorData
            ):  # there is no way to tell the server, which waits for answers
                raise Failed(f"{self.name} wanted something that it cannot have: {reply.message}", _NOT_OURS)
            responses[key] = reply
        return responses or None

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
            stream = await listened(session, uri, self._behind.updated, lambda: self.alive)
            self._streams.add(stream)
            stream.add_done_callback(self._streams.discard)

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

    # --- what the server wants ----------------------------------------------------------------------------

    async def _elicit(self, context: Any, params: Any) -> types.ElicitResult:
        """Only where it is clear whose call it belongs to, and that caller can show it."""
        under_way = self._calls.whose()
        handler = under_way.caller.answer if under_way is not None else None
        if handler is None or under_way is None:
            log.info("%s asked the human something; nobody can show it, so it was declined", self.name)
            return types.ElicitResult(action="decline")
        try:
            async with asyncio.timeout(ASK_SECONDS):
                question = asking.question(self.name, params, self._behind.scrub)
                reply = await under_way.while_it_lasts(handler(question))
        except Ended:
            return types.ElicitResult(action="cancel")
        except Exception:
            log.exception("a question of %s could not be shown", self.name)
            return types.ElicitResult(action="cancel")
        content = dict(reply.content) if reply.content is not None and reply.action == "accept" else None
        return types.ElicitResult(action=reply.action, content=content)

    async def _sample(self, context: Any, params: Any) -> types.CreateMessageResult | types.ErrorData:
        assert self._behind.samplings is not None
        try:
            answer = await self._behind.samplings.ask(params, self._calls.whose(), self._behind.scrub)
            return types.CreateMessageResult.model_validate(answer)
        except Refused as refused:
            return types.ErrorData(code=types.INVALID_REQUEST, message=str(refused))
        except Exception:
            log.exception("a wish of %s for a model could not be handled", self.name)
            return types.ErrorData(code=types.INTERNAL_ERROR, message="toolgate could not ask for it")

    async def _told_level(self, wanted: str) -> str:
        """The most that anybody wants to hear. Each caller gets what it wants of that."""
        known = [level for level in (wanted, self._level, OWN_LEVEL) if level in logs.LEVELS]
        level = min(known, key=logs.LEVELS.index)
        if not self.modern and self._client.server_capabilities.logging is not None and level != self._level:
            self._level = level
            request = types.SetLevelRequest(params=types.SetLevelRequestParams(level=level))
            with suppress(MCPError, TimeoutError):  # a server that will not be told logs as it likes
                async with asyncio.timeout(LEVEL_SECONDS):
                    await self._client.session.send_request(request, types.EmptyResult)
        return level

    async def _logged(self, params: types.LoggingMessageNotificationParams) -> None:
        under_way = self._calls.heard_by()
        caller = under_way.caller if under_way is not None else None
        hear = caller.hear if caller is not None and logs.wanted(params.level, caller.level()) else None
        if hear is not None and under_way is not None and not under_way.lines.take():
            hear = None
        mine = logs.wanted(params.level, OWN_LEVEL) and self._own.take()
        if hear is None and not mine:
            return  # looking for secrets costs more than a flood is worth
        line = logs.line(self.name, params.level, params.logger, params.data, self._behind.scrub)
        if mine:
            log.info("%s logs (%s): %s", line.logger, line.level, line.data)
        if hear is not None and under_way is not None:
            if missed := under_way.lines.told():
                hear(
                    logs.LogLine(self.name, "warning", self.name, f"[toolgate: {missed:,} messages left out]")
                )
            hear(line)

    async def _hear(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._behind.changed()
        elif isinstance(message, types.ResourceUpdatedNotification) and not self.modern:
            self._behind.updated(str(message.params.uri))


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
