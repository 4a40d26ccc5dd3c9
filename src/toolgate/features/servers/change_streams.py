"""The newest protocol's way of hearing of changes: a stream for each thing, for as long as it is wanted.

A stream that ends is opened again, and what was missed meanwhile may be a change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcp.client.subscriptions import ResourceUpdated, listen

from toolgate.core.errors import Unavailable
from toolgate.features.servers.active_calls import nobodys

REOPEN_SECONDS = 5.0
"""Seconds until a stream that ended is opened again."""


@dataclass(frozen=True)
class ChangeStream:
    asked: Mapping[str, Any]
    """As `listen` takes it."""
    honored: Callable[[Any], bool]
    """Whether the server will say it, by its acknowledgement."""
    tell: Callable[[Any], None]
    """Hears each event; and None, where one may have been missed."""


def resource(uri: str, updated: Callable[[str], None]) -> ChangeStream:
    def tell(event: Any) -> None:
        updated(event.uri if isinstance(event, ResourceUpdated) else uri)

    return ChangeStream(
        {"resource_subscriptions": [uri]}, lambda given: uri in (given.resource_subscriptions or ()), tell
    )


def tools(changed: Callable[[], None]) -> ChangeStream:
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
    async with listen(session, **wanted.asked) as stream:
        if not wanted.honored(stream.honored):
            raise Unavailable("the server does not say when this changes", "read it again")
        if opened.done():
            wanted.tell(None)
        else:
            opened.set_result(None)
        async for event in stream:
            wanted.tell(event)
