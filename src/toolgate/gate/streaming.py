"""A call whose result comes in parts while it is being found, and whole at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolgate.core.result import Result

Part = Callable[[Any], None]
_END = object()


async def stream(begin: Callable[[Part], Coroutine[Any, Any, Result]]) -> AsyncIterator[Any]:
    """The parts as they come, then the Result. Whoever stops listening ends the call."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[Any] = asyncio.Queue()

    def take(part: Any) -> None:  # tools may speak from their threads
        loop.call_soon_threadsafe(arrived.put_nowait, part)

    call = asyncio.ensure_future(begin(take))
    call.add_done_callback(lambda _: arrived.put_nowait(_END))
    try:
        while (part := await arrived.get()) is not _END:
            yield part
        yield call.result()
    finally:
        if not call.done():
            call.cancel()
            with suppress(asyncio.CancelledError):
                await call
