"""CONNECT: bytes both ways to a granted host and port. What is said inside nobody sees; only how much is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from toolgate.core.errors import Cancelled, NotAllowed, TimedOut

from .ask import Ask
from .dial import dial
from .forward import Way
from .http1 import READ, Wire
from .record import Attempt

_OPEN = b"HTTP/1.1 200 Connection established\r\n\r\n"


async def tunnel(ask: Ask, program: Wire, way: Way, attempt: Attempt) -> None:
    if way.injector.meant_for(ask.target.place):
        # In a tunnel no value could be put in, and what the host sends back could not be searched for it.
        raise NotAllowed(
            f"a secret of this program is for {ask.target.place}, so it is not reached by CONNECT",
            "send the https:// URL itself to the proxy (get_json and fetch_with_auth do)",
        )
    addresses = await way.pins.addresses(ask.target)
    attempt.allowed = True
    (reader, writer), attempt.address = await dial(ask.target, addresses, way.limits, None)
    try:
        attempt.status, program.answered = 200, True
        await program.write(_OPEN)
        async with asyncio.timeout(way.limits.idle_s) as patience:
            await _together(
                _pump(program.reader, writer, attempt.send, patience, way.limits.idle_s),
                _pump(reader, program.writer, attempt.receive, patience, way.limits.idle_s),
            )
    except TimeoutError as error:
        raise TimedOut(f"nothing went through the tunnel for {way.limits.idle_s:g} s") from error
    except OSError as error:
        raise Cancelled("the tunnel broke") from error
    finally:
        writer.transport.abort()


async def _together(*pumps: Coroutine[Any, Any, None]) -> None:
    tasks = [asyncio.create_task(pump) for pump in pumps]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pump(
    source: asyncio.StreamReader,
    sink: asyncio.StreamWriter,
    count: Callable[[int], None],
    patience: asyncio.Timeout,
    idle_s: float,
) -> None:
    while data := await source.read(READ):
        count(len(data))
        if not patience.expired():
            patience.reschedule(asyncio.get_running_loop().time() + idle_s)
        sink.write(data)
        await sink.drain()
        await asyncio.sleep(0)
    sink.write_eof()
