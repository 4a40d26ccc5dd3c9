"""Who wants to hear when a resource of a server changes: asked of the server once, however many they are.

What a server says of a resource that nobody subscribed to is not heard. A server that was started anew is asked again,
and everybody is told that the resource may have changed meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolgate.core.errors import Unavailable
from toolgate.features.servers.active_calls import nobodys

if TYPE_CHECKING:
    from toolgate.features.servers.connection import ServerConnection

log = logging.getLogger("toolgate.upstream")
TELL_SECONDS = 0.05
"""Changes of one resource within so many seconds are told as one."""
MOST_RESOURCES = 1000
"""Resources of one server that are listened for at once."""
ANSWER_SECONDS = 10.0
REOPEN_SECONDS = 5.0
"""Seconds until a stream that ended is opened again."""
Tell = Callable[[], None]
Leave = Callable[[], Coroutine[Any, Any, None]]


class Subscriptions:
    def __init__(self, server: str) -> None:
        self._server = server
        self._tells: dict[str, list[Tell]] = {}
        self._leaves: dict[str, tuple[ServerConnection, Leave]] = {}
        self._soon: dict[str, asyncio.TimerHandle] = {}
        self._lock = asyncio.Lock()

    async def join(self, connection: ServerConnection, uri: str, tell: Tell) -> None:
        """Raises whatever the server answers where it will not have it."""
        async with self._lock:
            if uri not in self._tells and len(self._tells) >= MOST_RESOURCES:
                raise Unavailable(
                    f"{MOST_RESOURCES} resources of {self._server} are listened for", "end some of these"
                )
            self._tells.setdefault(uri, []).append(tell)
            try:
                await self._ask(connection, uri)
            except BaseException:
                self._forget(uri, tell)
                raise

    async def leave(self, uri: str, tell: Tell) -> None:
        """The last one who leaves ends it at the server."""
        self._forget(uri, tell)
        async with self._lock:
            if uri in self._tells or uri not in self._leaves:
                return
            connection, leave = self._leaves.pop(uri)
            if connection.alive:
                try:
                    async with asyncio.timeout(ANSWER_SECONDS):
                        await leave()
                except Exception as error:
                    log.info("%s did not end a subscription: %s", self._server, type(error).__name__)

    def _forget(self, uri: str, tell: Tell) -> None:
        tells = self._tells.get(uri, [])
        if tell in tells:
            tells.remove(tell)
        if not tells:
            self._tells.pop(uri, None)
            if (soon := self._soon.pop(uri, None)) is not None:
                soon.cancel()

    async def again(self, connection: ServerConnection) -> None:
        """The server was started anew and knows nothing of it."""
        async with self._lock:
            for uri in list(self._tells):
                self.updated(uri)
                if not connection.alive:
                    continue
                try:
                    await self._ask(connection, uri)
                except TimeoutError:
                    connection.over("it did not answer a subscription")  # the next call starts it anew
                except Exception as error:
                    log.warning("%s takes a subscription no longer: %s", self._server, type(error).__name__)

    async def _ask(self, connection: ServerConnection, uri: str) -> None:
        held = self._leaves.get(uri)
        if held is not None and held[0] is connection:
            return
        async with asyncio.timeout(ANSWER_SECONDS):
            self._leaves[uri] = connection, await connection.subscribe(uri)

    def updated(self, uri: str) -> None:
        if uri in self._tells and uri not in self._soon:
            self._soon[uri] = asyncio.get_running_loop().call_later(TELL_SECONDS, self._tell, uri)

    def _tell(self, uri: str) -> None:
        self._soon.pop(uri, None)
        for tell in list(self._tells.get(uri, ())):
            tell()

    def close(self) -> None:
        for soon in self._soon.values():
            soon.cancel()
        self._soon.clear()


# The newest protocol's way of hearing of changes: a stream for each thing, for as long as it is wanted. A stream that ends is
# opened again, and what was missed meanwhile may be a change.


@dataclass(frozen=True)
class ChangeStream:
    asked: Mapping[str, Any]
    """As `listen` takes it."""
    honored: Callable[[Any], bool]
    """Whether the server will say it, by its acknowledgement."""
    tell: Callable[[Any], None]
    """Hears each event; and None, where one may have been missed."""


def resource_changes(uri: str, updated: Callable[[str], None]) -> ChangeStream:
    from mcp.client.subscriptions import ResourceUpdated

    def tell(event: Any) -> None:
        updated(event.uri if isinstance(event, ResourceUpdated) else uri)

    return ChangeStream(
        {"resource_subscriptions": [uri]}, lambda given: uri in (given.resource_subscriptions or ()), tell
    )


def tools_changes(changed: Callable[[], None]) -> ChangeStream:
    return ChangeStream(
        {"tools_list_changed": True}, lambda given: bool(given.tools_list_changed), lambda event: changed()
    )


async def listened(session: Any, wanted: ChangeStream, alive: Callable[[], bool]) -> asyncio.Task[None]:
    """A task that hears of it until it is cancelled. Raises where the server will not have it."""
    opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(_listen_on(session, wanted, opened, alive), context=nobodys())
    try:
        await asyncio.shield(opened)
    except BaseException:
        task.cancel()
        await asyncio.wait((task,))
        raise
    return task


async def _listen_on(
    session: Any, wanted: ChangeStream, opened: asyncio.Future[None], alive: Callable[[], bool]
) -> None:
    while True:
        try:
            await _listen(session, wanted, opened)
        except Exception as error:
            if not opened.done():
                opened.set_exception(error)
                return
        await asyncio.sleep(REOPEN_SECONDS)
        if not alive():
            return


async def _listen(session: Any, wanted: ChangeStream, opened: asyncio.Future[None]) -> None:
    from mcp.client.subscriptions import listen

    async with listen(session, **wanted.asked) as stream:
        if not wanted.honored(stream.honored):
            raise Unavailable("the server does not say when this changes", "read it again")
        if opened.done():
            wanted.tell(None)
        else:
            opened.set_result(None)
        async for event in stream:
            wanted.tell(event)
