"""One server behind the gate: started when it is needed, watched, tried again, and never taken for alive."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolgate.core.apart import apart, large
from toolgate.core.caller import Caller
from toolgate.core.context import Context
from toolgate.core.errors import CallError, Failed, NotAllowed, Unavailable, UnknownOutcome
from toolgate.features.servers.active_calls import ActiveCall, ServersPort
from toolgate.features.servers.config import ServerSpec, Sources
from toolgate.features.servers.definitions import Definition, RunningMark, ServerStore
from toolgate.features.servers.results import (
    as_read,
    late,
    lost,
    presented,
    told,
    unusable_tools,
    why_held,
    words,
)
from toolgate.features.servers.sampling import Samplings
from toolgate.features.servers.subscriptions import Subscriptions
from toolgate.features.servers.transport import Breaker, ServerTransport

if TYPE_CHECKING:
    from toolgate.features.servers.connection import ServerConnection

log = logging.getLogger("toolgate.upstream")
PING_SECONDS = 5.0
STALE = 300.0
"""After so many seconds a listing is asked for again, beside the next call."""
RELIST_PAUSE = 0.5
"""A server that says all the time that it changed is not asked all the time."""
REMEMBERED = 1000


@dataclass
class Health:
    """What this and earlier processes know; kept on disk for whoever asks without starting anything."""

    last_error: str = ""
    last_error_at: float = 0.0
    last_ok_at: float = 0.0
    latency_ms: float = 0.0
    starts: int = 0


class UpstreamServer:
    def __init__(
        self, name: str, spec: ServerSpec, root: Path, sources: Sources, store: ServerStore,
        listed: Callable[[str], None], port: ServersPort,
    ) -> None:  # fmt: skip
        self.name = name
        self.spec = spec
        self.samplings = Samplings(name, spec, port.call)
        self.subscriptions = Subscriptions(name)
        self.root = root
        self.breaker = Breaker()
        self.health = Health(**store.health(name))
        self.connection: ServerConnection | None = None
        self.restarts = 0
        self._sources = sources
        self._record = port.record
        self._store, self._mark = store, RunningMark(store.directory, name)
        self._listed = listed
        self._lock = asyncio.Lock()
        self._suspect = False
        self._transport: ServerTransport | None = None
        self._restart_stamp = store.restart_stamp(name)
        self._listed_at = self._relisted_at = 0.0
        self._relisting = False
        self._tasks: set[asyncio.Task[None]] = set()
        self.unchanged: Callable[[], str] = lambda: ""
        """Why the files that it is started from are not those that were approved."""
        self._sent: OrderedDict[str, bool] = OrderedDict()
        """Of the last calls, by id: whether they may have taken effect, should they be stopped or fail."""

    # --- state --------------------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        if not self.spec.enabled:
            return "disabled"
        if self.connection is not None and self.connection.alive:
            return "suspect" if self._suspect else "ready"
        if self._lock.locked():
            return "starting"
        if self.breaker.is_open:
            return "broken"
        return "waiting" if self.breaker.failures else "idle"

    def describe(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "transport": self.spec.kind,
            "target": self.spec.shown,
            "state": self.state,
            "retry_in_s": round(self.breaker.wait, 1),
            "failures": self.breaker.failures,
            "restarts": self.restarts,
            "pin": self.spec.pin,
            "sampling": self.spec.sampling,
            "elicitation": self.spec.elicitation,
            **asdict(self.health),
        }

    def scrub(self, value: Any, hidden: tuple[str, ...] = ()) -> Any:
        """Without the values that its environment and headers were filled with, and a call's own secrets."""
        return self._transport.scrub(value, hidden) if self._transport is not None else value

    # --- connecting ---------------------------------------------------------------------------------------

    async def ready(self) -> ServerConnection:
        """A connection that lives. One caller starts it, the others wait for that; nobody waits for long."""
        self._obey_restart()
        connection = self.connection
        if connection is not None and connection.alive and not self._suspect:
            return connection
        try:
            async with asyncio.timeout(2 * self.spec.start_timeout_s + PING_SECONDS):
                async with self._lock:
                    return await self._reconnected()
        except TimeoutError:
            raise self._unavailable("others have been waiting for it to start for too long") from None

    async def _reconnected(self) -> ServerConnection:
        connection = self.connection
        alive = connection is not None and connection.alive
        if connection is not None and alive and (not self._suspect or await self._answers(connection)):
            return connection
        await self._drop()
        if not self.spec.enabled:
            raise Unavailable(f"the server {self.name} is disabled", "set `enabled: true` in toolgate.yaml")
        if why := await asyncio.to_thread(self.unchanged):
            raise NotAllowed(*why_held(self.name, why), data={"rule": "hard:held", "server": self.name})
        if self.breaker.wait:
            raise self._unavailable(self.health.last_error)
        try:
            return await self._start()
        except CallError as error:
            self._failed(error.message)
            raise self._unavailable(self.health.last_error, error.fix) from None

    async def _start(self) -> ServerConnection:
        begun = time.perf_counter()
        self.restarts += self._listed_at > 0
        connection = self._connect()
        until = asyncio.get_running_loop().time() + self.spec.start_timeout_s
        await connection.opened(self.spec.start_timeout_s)
        try:
            async with asyncio.timeout_at(until):
                await self._list(connection)
        except BaseException as error:
            await connection.close()
            if isinstance(error, TimeoutError):
                fix = "raise `start_timeout_s` if it is slow to start"
                raise Unavailable(
                    f"it did not list its tools in {self.spec.start_timeout_s:g} s", fix
                ) from None
            if isinstance(error, Exception) and not isinstance(error, CallError):
                raise Unavailable(f"it could not list its tools: {error}", "check the server") from None
            raise
        self.connection, self._suspect = connection, False
        self._mark.set()
        self.health.starts += 1
        self._well((time.perf_counter() - begun) * 1000)  # it is there, but has not done anything yet
        self.beside(self.subscriptions.again(connection))
        self.beside(connection.follow_tools())
        return connection

    def _connect(self) -> ServerConnection:
        try:
            from toolgate.features.servers.client_callbacks import ConnectionHooks
            from toolgate.features.servers.connection import ServerConnection
        except ImportError:
            raise Unavailable(
                "the MCP SDK is not installed", "install it: pip install 'toolgate[servers]'"
            ) from None
        made: list[ServerConnection] = []

        def ended(why: str) -> None:
            fresh = bool(made) and not made[0].lost
            if fresh:
                made[0].over(why)
            if fresh and self.connection is made[0]:
                self._mark.clear()
                self._failed(why)

        self._transport = ServerTransport(self.spec, self.root, self._sources)
        transport = self._transport.transport(self.name, ended)
        hint = "check `url` and `headers`" if self.spec.url else "start it by hand to see what it says"
        offered = self.samplings if self.spec.sampling != "deny" else None
        may_ask = self.spec.elicitation == "allow"
        hooks = ConnectionHooks(
            self.scrub, self._record, self._relist_soon, self.subscriptions.updated, offered, may_ask
        )
        made.append(ServerConnection(self.name, transport, self.spec.kind == "sse", hooks, hint))
        return made[0]

    async def _answers(self, connection: ServerConnection) -> bool:
        """A call was stopped: before the next one is sent, find out whether anybody is there."""
        try:
            self._well(await connection.ping(PING_SECONDS))
        except Exception:
            self._failed("it no longer answers")
            return False
        self._suspect = False
        return True

    async def _drop(self) -> None:
        connection, self.connection = self.connection, None
        self._mark.clear()
        if connection is not None:
            await connection.close()

    def _obey_restart(self) -> None:
        """`toolgate servers restart` in another process."""
        stamp = self._store.restart_stamp(self.name)
        if stamp != self._restart_stamp:
            self._restart_stamp = stamp
            self.breaker.worked()
            if self.connection is not None:
                self.connection.over("a restart was asked for")

    async def restart(self) -> None:
        """Forget the failures, end it, start it again."""
        self._store.ask_restart(self.name)
        self._obey_restart()
        await self.ready()

    async def close(self) -> None:
        self.subscriptions.close()
        for task in list(self._tasks):
            task.cancel()
        await self._drop()

    def beside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Work that goes on whoever waits for it, as long as the gate is open."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # --- listing ------------------------------------------------------------------------------------------

    async def _list(self, connection: ServerConnection) -> None:
        tools = await connection.tools()
        refused = await apart(unusable_tools, tools)
        self._store.save_listing(self.name, tools, refused, self.spec.launch, connection.facts)
        self._listed_at = time.monotonic()
        self._listed(self.name)

    def _relist_soon(self) -> None:
        """Not in the way of anything: at most one at a time."""
        if self._relisting or self.connection is None:
            return
        self._relisting = True
        self.beside(self._relist(self.connection))

    async def _relist(self, connection: ServerConnection) -> None:
        last = max(self._listed_at, self._relisted_at)
        await asyncio.sleep(max(0.0, RELIST_PAUSE - (time.monotonic() - last)))
        self._relisted_at = time.monotonic()  # also if it fails: the next one waits all the same
        try:
            async with asyncio.timeout(self.spec.start_timeout_s):
                await self._list(connection)
        except Exception as error:
            said = words(str(error), self.scrub, 300)
            log.warning("%s could not list its tools again: %s", self.name, said)
        finally:
            self._relisting = False

    # --- calling ------------------------------------------------------------------------------------------

    async def call(
        self, definition: Definition, args: Mapping[str, Any], context: Context, effectful: bool,
        held: Callable[[], str],
    ) -> dict[str, Any]:  # fmt: skip
        """Send one call, at most once. What is raised says whether it may have happened."""
        self._note(context.call_id, False)
        connection = await self.ready()
        if why := held():  # starting it may have shown that the tool is another one by now
            raise NotAllowed(*why_held(self.name, why))
        begun = time.perf_counter()
        self._note(context.call_id, True)
        try:
            async with asyncio.timeout(self.spec.timeout_s):
                raw = await self._send(connection, definition.name, args, context)
        except TimeoutError:
            self._suspect = True
            raise late(self.name, self.spec.timeout_s, effectful) from None
        except asyncio.CancelledError:
            self._suspect = True
            raise
        except CallError as error:
            if not isinstance(error, UnknownOutcome):
                self._note(context.call_id, False)
            raise error if effectful or not isinstance(error, UnknownOutcome) else as_read(error) from None
        self._note(context.call_id, False)  # from here on it can only be said to have failed
        self.breaker.worked()
        self._well((time.perf_counter() - begun) * 1000)
        if time.monotonic() - self._listed_at > STALE:
            self._relist_soon()
        if large(raw):  # in other scripts and with secrets to be looked for, megabytes take seconds
            return await apart(presented, self.name, definition, raw, self.scrub)
        return presented(self.name, definition, raw, self.scrub)

    async def _send(
        self, connection: ServerConnection, tool: str, args: Mapping[str, Any], context: Context
    ) -> dict[str, Any]:
        from mcp.shared.exceptions import MCPError
        from pydantic import ValidationError

        call = ActiveCall(context.caller or Caller(), context)
        try:
            return await connection.call(tool, args, told(self.name, context, self.scrub), call)
        except MCPError as error:
            raise self._answered_error(connection, error, call.refused) from None
        except ValidationError:
            raise self._lost(connection, "its answer is no MCP result") from None
        except OSError as error:
            raise self._lost(connection, str(error)) from None

    def _answered_error(self, connection: ServerConnection, error: Any, refused: bool) -> CallError:
        import mcp_types as types

        doubtful = error.code in (types.CONNECTION_CLOSED, types.REQUEST_TIMEOUT, types.PARSE_ERROR)
        if refused:
            connection.over("it cannot be reached")
            self._failed("it cannot be reached")
            return self._unavailable("it cannot be reached")
        if error.message == "Session terminated":  # the SDK's word for a server that forgot us: nothing ran
            connection.over("it forgot the session")
            return Unavailable(f"{self.name} has forgotten this session", "call again: it is connected anew")
        if doubtful or error.message.startswith(("Server returned an error", "Unexpected content type")):
            return self._lost(connection, connection.lost or words(error.message, self.scrub, 300))
        said = words(error.message, self.scrub, 1000)
        return Failed(
            f"{self.name} refused the call: {said}", "these are the server's words; check the arguments"
        )

    def _lost(self, connection: ServerConnection, why: str) -> CallError:
        if connection.alive:
            connection.over(why)
            self._failed(why)
        return lost(self.name, why)

    def fate(self, call_id: str) -> tuple[bool | None, str]:
        """What is known of a call that was stopped or failed: False means that it had no effect to lose."""
        return (None, f"{self.name} cannot tell") if self._sent.get(call_id, True) else (False, "")

    def _note(self, call_id: str, doubtful: bool) -> None:
        self._sent[call_id] = doubtful
        while len(self._sent) > REMEMBERED:
            self._sent.popitem(last=False)

    # --- health -------------------------------------------------------------------------------------------

    def _well(self, milliseconds: float) -> None:
        now = time.time()
        write = now - self.health.last_ok_at > 30 or self.health.last_error_at > self.health.last_ok_at
        self.health.last_ok_at, self.health.latency_ms = now, round(milliseconds, 1)
        if write:
            self._store.save_health(self.name, asdict(self.health))

    def _failed(self, why: str) -> None:
        said = self._transport.last_words() if self._transport is not None else []
        self.breaker.failed()
        reason = words(why, self.scrub, 1000)
        self.health.last_error = f"{reason} ({' | '.join(said)})"[:1000] if said else reason
        self.health.last_error_at = time.time()
        self._suspect = False
        log.info("the server %s failed: %s", self.name, self.health.last_error)
        self._store.save_health(self.name, asdict(self.health))

    def _unavailable(self, why: str, fix: str = "") -> Unavailable:
        wait = self.breaker.wait
        when = f"it is tried again in {wait:.1f} s" if wait else "it is tried again at the next call"
        return Unavailable(
            f"the server {self.name} is not available: {why}",
            f"{fix}; {when}" if fix else f"{when}; `toolgate servers {self.name}` says more",
            data={"server": self.name, "retry_after_s": round(wait, 1)},
        )
